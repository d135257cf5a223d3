// Brings the figures up to date once a second while the page is visible, and
// leaves alone what has not changed: selections, tooltips and scrolling stay.
// The server has escaped them.
const period = 1000;
const pulse = document.getElementById("pulse");

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
    if (!next.hasAttribute(name)) node.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  }
  const children = [...node.childNodes];
  const wanted = [...next.childNodes];
  children.slice(wanted.length).forEach((child) => child.remove());
  wanted.forEach((child, i) => (i < children.length ? update(children[i], child) : node.append(child)));
}

async function refresh() {
  const answer = await fetch(location.href, {
    headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(10 * period),
  });
  if (!answer.ok) throw new Error(answer.statusText);
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  update(document.querySelector("main"), next.querySelector("main"));
}

// A page that takes long is asked for less often.
async function live() {
  const start = performance.now();
  if (!document.hidden) {
    try {
      await refresh();
      pulse.className = "live";
      pulse.textContent = "live";
    } catch {
      pulse.className = "lost";
      pulse.textContent = "no answer";
    }
  }
  setTimeout(live, Math.max(period, 2 * (performance.now() - start)));
}
setTimeout(live, period);
