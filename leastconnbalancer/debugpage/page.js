// Replaces the figures with those of now, once a second, while the page is
// visible. The server has escaped them.
const period = 1000;
const pulse = document.getElementById("pulse");

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(next.querySelector("main"));
    pulse.className = "live";
  } catch {
    pulse.className = "lost";
  }
}

async function live() {
  await refresh();
  setTimeout(live, period);
}
live();
