// Readings: every drawing carries its values and their places. The one nearest to a pointer, a finger or the
// keyboard's place is marked and said.
const reading = (() => {
  const note = document.getElementById("reading");
  const hide = () => { note.hidden = true; };
  // Above a point of the window, or below where there is no room above.
  const show = (text, x, top, bottom) => {
    note.textContent = text;
    note.hidden = false;
    const { width, height } = note.getBoundingClientRect();
    const room = document.documentElement.clientWidth - width - 8;
    note.style.left = window.scrollX + Math.max(8, Math.min(x - width / 2, room)) + "px";
    note.style.top = window.scrollY + (top - height - 10 > 0 ? top - height - 10 : bottom + 10) + "px";
  };
  return { show, hide };
})();

const REACH = 24; // pixels from which a reading is heard

const readable = drawing => {
  const data = JSON.parse(drawing.querySelector("script").textContent);
  const name = () => drawing.querySelector("svg.wide").getClientRects().length ? "wide" : "narrow";
  const svg = () => drawing.querySelector("svg." + name());
  const marks = {};
  for (const each of ["wide", "narrow"]) {
    marks[each] = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    marks[each].setAttribute("class", "mark");
    drawing.querySelector("svg." + each).appendChild(marks[each]);
  }
  let layer = 0, current = -1;
  const heard = at => !data.layers || data.layers[at] === null || data.layers[at] === layer;
  // Where a reading is in the window: its place in the drawing, times the scale.
  const frame = () => {
    const rect = svg().getBoundingClientRect();
    return { rect, scale: rect.width / svg().viewBox.baseVal.width };
  };
  const hide = () => {
    for (const mark of Object.values(marks)) mark.style.display = "none";
    reading.hide();
  };
  const show = (at, event) => {
    current = at;
    const [x, y, width, height] = data[name()][at], mark = marks[name()];
    const point = width === 0 && height === 0, around = point ? 5 : 0;
    const place = { x: x - around, y: point ? y - 5 : y, width: Math.max(width + 2 * around, 0.01), height: point ? 10 : height, rx: point ? 5 : 0 };
    for (const key in place) mark.setAttribute(key, place[key]);
    mark.style.display = "inline";
    // The note stands at the point; in a region at the pointer, or, for the keyboard, in the middle.
    const { rect, scale } = frame(), follow = event && !point;
    const across = follow ? event.clientX : rect.left + scale * (x + width / 2);
    const down = follow ? event.clientY : rect.top + scale * (y + height / 2);
    reading.show(data.texts[at], across, down - 6, down + 14);
  };
  const point = event => {
    const { rect, scale } = frame();
    const px = (event.clientX - rect.left) / scale, py = (event.clientY - rect.top) / scale;
    let best = -1, least = REACH / scale;
    data[name()].forEach(([x, y, width, height], at) => {
      if (!heard(at)) return;
      const distance = Math.hypot(Math.max(x - px, 0, px - x - width), Math.max(y - py, 0, py - y - height));
      if (distance < least) [best, least] = [at, distance];
    });
    if (best < 0) hide(); else show(best, event);
  };
  // The next reading of the layer shown, `step` of them further on; the last one where there are no more.
  const move = (from, step) => {
    const sign = Math.sign(step);
    let found = -1;
    for (let at = from, left = Math.abs(step); left > 0 && data.texts[at] !== undefined; at += sign)
      if (heard(at)) { found = at; left--; }
    if (found >= 0) show(found);
  };
  const keys = {
    ArrowRight: event => move(current + 1, event.shiftKey ? 10 : 1),
    ArrowLeft: event => move(current - 1, event.shiftKey ? -10 : -1),
    Home: () => move(0, 1),
    End: () => move(data.texts.length - 1, -1),
    Escape: hide,
  };
  drawing.addEventListener("pointermove", point);
  drawing.addEventListener("pointerdown", point);
  drawing.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") hide(); });
  drawing.addEventListener("blur", hide);
  drawing.addEventListener("focus", () => {
    if (!drawing.matches(":focus-visible")) return;
    if (current >= 0 && heard(current)) show(current); else move(0, 1);
  });
  drawing.addEventListener("keydown", event => {
    if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key](event);
  });
  // The buttons above a figure with layers.
  for (const button of drawing.parentElement.querySelectorAll(".layers input")) {
    button.addEventListener("change", () => {
      layer = +button.value;
      current = -1;
      hide();
      for (const group of drawing.querySelectorAll("g[data-layer]"))
        group.setAttribute("visibility", +group.dataset.layer === layer ? "visible" : "hidden");
    });
    if (button.checked && +button.value !== 0) button.dispatchEvent(new Event("change")); // kept over a reload
  }
};
document.querySelectorAll(".drawing").forEach(readable);
// A touch elsewhere puts the reading away.
document.addEventListener("pointerdown", event => { if (!event.target.closest(".drawing, canvas")) reading.hide(); });

