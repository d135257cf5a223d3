// Brings the figures up to date once a second while the page is visible, and
// leaves alone what has not changed: selections, tooltips and scrolling stay.
// The server has escaped them, sorts and filters; history.js adds the last minute.
const period = 1000;
const quiet = 10 * period; // between two announcements to a screen reader
const form = document.getElementById("show");
const pulse = document.getElementById("pulse");
const news = document.getElementById("news");
let pause = period;
let asked = 0;
let unsaid = [];
let said = -quiet;

function update(node, next) {
  if (node.isEqualNode(next)) return;
  if (node.nodeName !== next.nodeName) {
    node.replaceWith(next);
    return;
  }
  if (node.nodeType === Node.TEXT_NODE) {
    node.data = next.data;
    return;
  }
  for (const { name } of [...node.attributes]) {
    if (!next.hasAttribute(name) && name !== "open") node.removeAttribute(name); // what one has opened stays open
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  const children = [...node.childNodes];
  const wanted = [...next.childNodes];
  children.slice(wanted.length).forEach((child) => child.remove());
  wanted.forEach((child, i) => (i < children.length ? update(children[i], child) : node.append(child)));
}

// refresh shows what the address asks for. Of answers that cross the last one asked for counts.
async function refresh() {
  const number = ++asked;
  try {
    const answer = await fetch(location.href, {
      headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10 * period),
    });
    if (!answer.ok) throw new Error(answer.statusText);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (number !== asked) return;
    unsaid.push(...follow(next, performance.now(), pause));
    for (const part of ["h1", "main", "footer"]) update(document.querySelector(part), next.querySelector(part));
    show("live", "live");
    announce();
  } catch {
    if (number === asked) show("lost", "no answer");
  }
}

// show says how things are, once: what does not change is not read out again.
function show(state, text) {
  if (pulse.className === state) return;
  pulse.className = state;
  pulse.textContent = text;
}

// announce tells a screen reader what has happened, now and then.
function announce() {
  if (unsaid.length === 0 || performance.now() - said < quiet) return;
  said = performance.now();
  const counts = new Map();
  for (const { kind } of unsaid) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  news.textContent = unsaid.length === 1 ? `${unsaid[0].name} ${unsaid[0].text}` : [...counts].map(([kind, n]) => `${n} ${kind}`).join(", ");
  unsaid = [];
}

// A page that takes long is asked for less often.
async function live() {
  const start = performance.now();
  if (!document.hidden) await refresh();
  pause = Math.max(period, 2 * (performance.now() - start));
  setTimeout(live, pause);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = new URLSearchParams();
  for (const [name, value] of new FormData(form, event.submitter)) fields.set(name, value); // a column's button comes after the form's own
  history.replaceState(null, "", "?" + fields);
  form.querySelector("select[name=sort]").value = fields.get("sort");
  await refresh();
  if (event.submitter?.name === "sort") news.textContent = document.querySelector("caption")?.textContent ?? "";
});
form.addEventListener("change", (event) => {
  if (event.target.matches("select")) form.requestSubmit();
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});

document.documentElement.className = "js";
follow(document, performance.now(), pause);
setTimeout(live, period);
