package trial

// Outcome is what a policy made of a scenario.
type Outcome struct {
	Before, After []Load      // of the hosts in the list, in the order of their slots
	Placements    []Placement // of all sessions
	Faults        []string    // what else was not as the scenario wants it
	Err           error       // why the scenario could not be played to its end
}

// Misplacements says which sessions went wrong and how.
func (o Outcome) Misplacements() []string {
	var wrong []string
	for _, p := range o.Placements {
		if w := p.Misplacement(); w != "" {
			wrong = append(wrong, w)
		}
	}
	return wrong
}
