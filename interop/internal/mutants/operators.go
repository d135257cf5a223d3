package main

import (
	"go/ast"
	"go/token"
	"strconv"
)

// edit replaces the source from one position to another by a text.
type edit struct {
	op       string
	from, to token.Pos
	text     string
}

var swapped = map[token.Token]struct {
	op string
	to token.Token
}{
	token.LSS:  {"compare", token.LEQ},
	token.LEQ:  {"compare", token.LSS},
	token.GTR:  {"compare", token.GEQ},
	token.GEQ:  {"compare", token.GTR},
	token.EQL:  {"compare", token.NEQ},
	token.NEQ:  {"compare", token.EQL},
	token.ADD:  {"arithmetic", token.SUB},
	token.SUB:  {"arithmetic", token.ADD},
	token.LAND: {"logic", token.LOR},
	token.LOR:  {"logic", token.LAND},
}

// edits returns every edit that the operators offer in a function, those of one operator in source order. text returns
// the source of a node.
func edits(fn *ast.FuncDecl, text func(ast.Node) string) []edit {
	var all []edit
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			all = append(all, negate(n.Cond, text)...)
		case *ast.ForStmt:
			all = append(all, negate(n.Cond, text)...)
		case *ast.BinaryExpr:
			all = append(all, swap(n)...)
		case *ast.BlockStmt:
			all = append(all, deletes(n.List)...)
		case *ast.CaseClause:
			all = append(all, deletes(n.Body)...)
		case *ast.CommClause:
			all = append(all, deletes(n.Body)...)
		case *ast.BasicLit:
			all = append(all, increment(n)...)
		case *ast.ReturnStmt:
			all = append(all, flips(n.Results)...)
		case *ast.BranchStmt:
			all = append(all, leave(n)...)
		}
		return true
	})
	return all
}

// negate leaves == and != alone: compare makes the same mutant of them.
func negate(cond ast.Expr, text func(ast.Node) string) []edit {
	if cond == nil {
		return nil
	}
	if b, ok := cond.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return nil
	}
	return []edit{{"negate", cond.Pos(), cond.End(), "!(" + text(cond) + ")"}}
}

func swap(n *ast.BinaryExpr) []edit {
	s, ok := swapped[n.Op]
	if !ok || s.op == "arithmetic" && (isString(n.X) || isString(n.Y)) {
		return nil
	}
	return []edit{{s.op, n.OpPos, n.OpPos + token.Pos(len(n.Op.String())), s.to.String()}}
}

func isString(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING
}

func deletes(list []ast.Stmt) []edit {
	var all []edit
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || allBlank(s.Lhs) {
				continue
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt:
		default:
			continue
		}
		all = append(all, edit{"delete", s.Pos(), s.End(), ""})
	}
	return all
}

func allBlank(exprs []ast.Expr) bool {
	for _, e := range exprs {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}

func increment(n *ast.BasicLit) []edit {
	if n.Kind != token.INT {
		return nil
	}
	v, err := strconv.ParseUint(n.Value, 0, 63)
	if err != nil {
		return nil
	}
	return []edit{{"integer", n.Pos(), n.End(), strconv.FormatUint(v+1, 10)}}
}

func flips(results []ast.Expr) []edit {
	var all []edit
	for _, e := range results {
		id, ok := e.(*ast.Ident)
		switch {
		case ok && id.Name == "true":
			all = append(all, edit{"bool", id.Pos(), id.End(), "false"})
		case ok && id.Name == "false":
			all = append(all, edit{"bool", id.Pos(), id.End(), "true"})
		}
	}
	return all
}

func leave(n *ast.BranchStmt) []edit {
	end := n.Pos() + token.Pos(len(n.Tok.String()))
	switch n.Tok {
	case token.BREAK:
		return []edit{{"loop", n.Pos(), end, "continue"}}
	case token.CONTINUE:
		return []edit{{"loop", n.Pos(), end, "break"}}
	}
	return nil
}
