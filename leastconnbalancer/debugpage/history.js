// A minute of each endpoint, kept in this tab: what it had in flight, and what has
// happened to it, from the facts that each row has in data-h: its number, in flight,
// channels, connections so far, RPCs on connections before, streams that moved here
// and away. Nothing is kept for more endpoints than are drawn.
const minute = 60_000;
const drawn = 200; // endpoints, the page's first
const listed = 8; // events of a service
const [width, height, base, headroom] = [120, 24, 22, 5]; // of a curve
const shapes = {
  joined: "M0,-3L3,2H-3Z", left: "M0,3L3,-2H-3Z", connection: "M0,-3L3,0L0,3L-3,0Z", moved: "M-2.5,0A2.5,2.5 0 1 1 2.5,0A2.5,2.5 0 1 1 -2.5,0Z", state: "M-2,-2H2V2H-2Z",
  failed: "M-3,-2L-2,-3L0,-1L2,-3L3,-2L1,0L3,2L2,3L0,1L-2,3L-3,2L-1,0Z",
};
const services = new Map(); // by name
let running = document.querySelector("h1").textContent;

const plural = (n, one) => `${n} ${one}${n === 1 ? "" : "s"}`;

function factsOf(row) {
  const [number, inFlight, channels, connections, earlier, here, away] = row.dataset.h.split(" ").map(Number);
  const name = row.cells[0].firstChild.data.trim();
  return { number, inFlight, channels, connections, earlier, here, away, name, state: row.className.replace("_", " ") };
}

// changes says what has happened to an endpoint between two looks.
function* changes(was, is) {
  if (was.state !== is.state) {
    if (is.state === "departed") yield ["left", `left the list, ${plural(is.inFlight, "RPC")} in flight`];
    else yield [is.state === "not ready" ? "failed" : "state", `is ${is.state}, was ${was.state}`];
  }
  if (was.channels === is.channels && was.connections > 0 && is.connections > was.connections) {
    yield ["connection", is.earlier > 0 ? `has a new connection, ${plural(is.earlier, "RPC")} on the one before (GOAWAY)` : "has a new connection"];
  }
  if (is.here > was.here) yield ["moved", `${plural(is.here - was.here, "stream")} moved here`];
  if (is.away > was.away) yield ["moved", `${plural(is.away - was.away, "stream")} moved away`];
}

// look takes up the rows of a service. left is how many of them may be drawn still.
function look(service, table, now, left) {
  const newest = Number(table.dataset.newest);
  const rows = [...table.tBodies[0].rows];
  const there = new Set();
  const events = [];
  const note = (endpoint, kind, text) => {
    const event = { at: now, kind, name: endpoint.is.name, text, clock: new Date().toLocaleTimeString() };
    endpoint.marks.push(event);
    events.push(event);
  };
  rows.forEach((row, i) => {
    if (i >= left) {
      there.add(parseInt(row.dataset.h, 10));
      return;
    }
    const is = factsOf(row);
    there.add(is.number);
    let endpoint = service.endpoints.get(is.number);
    if (!endpoint) {
      endpoint = { samples: [], marks: [], is };
      service.endpoints.set(is.number, endpoint);
      if (is.number > service.newest) note(endpoint, "joined", "joined");
    }
    const was = endpoint.is;
    endpoint.is = is;
    for (const [kind, text] of changes(was, is)) note(endpoint, kind, text);
    endpoint.samples.push([now, is.inFlight]);
  });
  for (const [number, endpoint] of service.endpoints) {
    const gone = !there.has(number);
    if (gone && "whole" in table.dataset && endpoint.is.state !== "departed") note(endpoint, "left", "left the list");
    endpoint.samples = endpoint.samples.filter(([at]) => now - at <= minute);
    endpoint.marks = endpoint.marks.filter(({ at }) => now - at <= minute);
    if ((gone && "whole" in table.dataset) || endpoint.samples.length === 0) service.endpoints.delete(number);
  }
  service.newest = newest;
  service.seen = now;
  service.events = [...events.toReversed(), ...service.events].filter(({ at }) => now - at <= minute);
  return events;
}

function element(name, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function html(name, attributes, ...children) {
  const node = Object.assign(document.createElement(name), attributes);
  node.append(...children);
  return node;
}

// curve draws an endpoint's minute; where nobody looked it is broken.
function curve({ samples, marks, is }, now, top, gap) {
  const x = (at) => (width + ((at - now) / minute) * width).toFixed(1);
  const y = (n) => (base - (n / top) * (base - headroom)).toFixed(1);
  let line = "";
  let area = "";
  samples.forEach(([at, n], i) => {
    const before = samples[i - 1];
    if (!before || at - before[0] > gap) {
      if (before) area += `V${base}Z`;
      line += `M${x(at)},${y(n)}`;
      area += `M${x(at)},${base}V${y(n)}`;
      return;
    }
    line += `H${x(at)}V${y(n)}`;
    area += `H${x(at)}V${y(n)}`;
  });
  const ns = samples.map(([, n]) => n);
  const label = [`last minute: ${Math.min(...ns)} to ${Math.max(...ns)} in flight`, ...marks.map(({ clock, text }) => `${clock} ${text}`)].join("; ");
  return element(
    "svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    element("path", { class: "base", d: `M0,${base}H${width}` }), element("path", { class: "area", d: `${area}V${base}Z` }), element("path", { class: "line", d: line }),
    ...marks.map(({ at, kind, clock, text }) => element(
      "g", { class: `mark ${kind}`, transform: `translate(${x(at)},4)` },
      element("title", {}, `${clock} ${text}`), element("path", { class: "stem", d: `M0,0V${base - 4}` }), element("path", { d: shapes[kind] }),
    )),
  );
}

// eventList has the service's last events, those of endpoints that are gone, too.
function eventList({ events }) {
  const list = html("ol", { className: "events", ariaLabel: "Events of the last minute" });
  for (const { kind, clock, name, text } of events.slice(0, listed)) {
    const key = element("svg", { class: "key", viewBox: "-4 -4 8 8", "aria-hidden": "true" }, element("g", { class: `mark ${kind}` }, element("path", { d: shapes[kind] })));
    list.append(html("li", {}, key, html("time", {}, clock), " ", html("b", {}, name), ` ${text}`));
  }
  if (events.length > listed) list.append(html("li", {}, `and ${events.length - listed} more in the last minute`));
  return list;
}

// draw adds the service's minute to its section.
function draw(service, section, now, gap, left) {
  const table = section.querySelector(".endpoints");
  const rows = [...table.tBodies[0].rows];
  const shown = rows.slice(0, left);
  const all = shown.map((row) => service.endpoints.get(parseInt(row.dataset.h, 10)));
  const top = Math.max(1, ...all.flatMap(({ samples }) => samples.map(([, n]) => n)));
  shown.forEach((row, i) => row.querySelector(".c-minute").replaceChildren(curve(all[i], now, top, gap)));
  if (service.events.length > 0) table.after(eventList(service));
  if (rows.length > 0) {
    const cut = rows.length > shown.length ? ` They and the events are of the page's first ${drawn} endpoints: filter for others.` : "";
    table.after(html("p", { className: "note curves" }, `Curves are in flight in the last minute, since this tab was opened; each reaches up to ${top}.${cut}`));
  }
}

// follow takes up a page as it is at a time, and adds to it what has been before. It
// returns the events that are new.
function follow(page, now, pause) {
  const process = page.querySelector("h1").textContent;
  const events = [];
  if (process !== running) { // it has started again: these are other counts
    services.clear();
    running = process;
    events.push({ kind: "restarted", name: "the process", text: "has started again" });
  }
  const names = new Map();
  let left = drawn;
  for (const section of page.querySelectorAll("section")) {
    const table = section.querySelector(".endpoints");
    const key = section.querySelector("h2");
    let name = key.textContent;
    if (key.querySelector("small")) name += "\n" + section.querySelector(".channels tbody th")?.firstChild.data.trim(); // private
    names.set(name, (names.get(name) ?? 0) + 1);
    name += "\n" + names.get(name);
    if (!services.has(name)) services.set(name, { endpoints: new Map(), events: [], newest: Number(table.dataset.newest) });
    const service = services.get(name);
    events.push(...look(service, table, now, left));
    draw(service, section, now, Math.max(5000, 3 * pause), left);
    left = Math.max(0, left - table.tBodies[0].rows.length);
  }
  for (const [name, { seen }] of services) {
    if (now - seen > minute) services.delete(name);
  }
  return events;
}
