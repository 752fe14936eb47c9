// A value is known by a key. All elements that belong to it carry the key in data-k, and those that lead to it in data-via.
"use strict";
(() => {
  const words = (text) => (text || "").split(" ").filter(Boolean);
  const own = new Map(), leading = new Map();
  const collect = (map, attribute) => {
    for (const e of document.querySelectorAll("[" + attribute + "]"))
      for (const k of words(e.getAttribute(attribute))) {
        if (!map.has(k)) map.set(k, []);
        map.get(k).push(e);
      }
  };
  collect(own, "data-k");
  collect(leading, "data-via");
  const help = document.getElementById("lit"), first = help.textContent;
  let pinned = [], lit = [], ring = "";

  const keysOf = (e) => (e ? words(e.dataset.k).concat(e.dataset.k ? [] : words(e.dataset.via)) : []);
  const light = (keys) => {
    for (const e of lit) e.classList.remove("lit", "via");
    lit = [];
    for (const k of keys) {
      for (const e of leading.get(k) || []) e.classList.add("via"), lit.push(e);
      for (const e of own.get(k) || []) e.classList.add("lit"), lit.push(e);
    }
    for (const e of lit) if (e.classList.contains("lit")) e.classList.remove("via");
    say(keys);
  };
  // What is lit may be out of sight: the line at the bottom says what it is, and leads to it.
  const say = (keys) => {
    help.textContent = keys.length ? "" : first;
    for (const k of keys) {
      const row = document.getElementById(k);
      if (!row || !row.classList.contains("value")) continue;
      const name = document.createElement("a");
      name.href = "#" + k;
      name.textContent = row.cells[0].textContent.trim();
      help.append(name, " " + row.cells[1].textContent + " = " + row.cells[2].textContent + "  ");
      for (const link of row.cells[4].querySelectorAll("a")) help.append(link.cloneNode(true), " ");
    }
  };
  const closest = (target) => (target instanceof Element ? target.closest("[data-k], [data-via]") : null);
  document.addEventListener("pointerover", (event) => {
    if (event.target instanceof Element && event.target.closest("#inspector")) return;
    const e = closest(event.target);
    const focused = closest(document.activeElement);
    light(e ? keysOf(e) : pinned.length ? pinned : keysOf(focused));
  });
  document.addEventListener("focusin", (event) => {
    const e = closest(event.target);
    if (e) light(keysOf(e));
  });
  document.addEventListener("focusout", (event) => {
    const to = event.relatedTarget; // in the line at the bottom it is a link of what is lit, which must not go before it is followed
    if (!closest(to) && !(to instanceof Element && to.closest("#inspector"))) light(pinned);
  });
  document.addEventListener("click", (event) => {
    const e = closest(event.target);
    if (!e || event.target.closest("a[href]")) return;
    pinned = keysOf(e);
    e.focus({ preventScroll: true });
    light(pinned);
  });

  const go = (e) => {
    e.focus();
    e.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    const e = closest(document.activeElement);
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Escape") {
      pinned = [], ring = "";
      if (document.activeElement instanceof HTMLElement || document.activeElement instanceof SVGElement) document.activeElement.blur();
      light(pinned);
      return;
    }
    if (!e) return;
    const step = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" && !document.activeElement.hasAttribute("href")) {
      pinned = keysOf(e);
      light(pinned);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      // Bytes may be of several values: the places are those of the one that it began with.
      if (!keysOf(e).includes(ring)) ring = keysOf(e)[0];
      const all = own.get(ring) || [];
      if (all.length) go(all[(all.indexOf(e) + step + all.length) % all.length]);
    } else if (step) {
      const part = e.closest("section") || document;
      const all = [...part.querySelectorAll("[data-k]")];
      const next = all[all.indexOf(e) + step];
      if (next) go(next);
    } else return;
    event.preventDefault();
  });

  // A link to a place of a value keeps the value lit.
  const follow = () => {
    const id = location.hash.slice(1), m = /(?:^|-)(v\d+)$/.exec(id);
    if (!m || !own.has(m[1])) return;
    pinned = [m[1]];
    light(pinned);
  };
  addEventListener("hashchange", follow);
  follow();
})();
