// Each graph that is small enough carries its eigenpairs.
// Q = sum over a of exp(-(E_a - mu)^2 / 2 sigma^2) phi_a phi_a^T, kept where >= epsilon, then D^-1/2 Q D^-1/2 with D the
// row sums of what was kept.
const byHand = section => {
  const data = JSON.parse(section.parentElement.querySelector("script").textContent);
  const n = data.nodes;
  // Five bytes an entry, in units of 2^-39.
  const bytes = new DataView(Uint8Array.from(atob(data.vectors), letter => letter.charCodeAt(0)).buffer);
  const vectors = Float64Array.from({ length: n * n }, (_, at) =>
    (bytes.getInt8(5 * at + 4) * 2 ** 32 + bytes.getUint32(5 * at, true)) / 2 ** 39);
  let diagonalShare = null; // of the last kernel: the share of the diagonal in what was kept, before it was normalised
  const kernel = (mu, sigma, epsilon) => {
    const q = new Float64Array(n * n);
    data.eigenvalues.forEach((energy, a) => {
      const weight = Math.exp(-((energy - mu) ** 2) / (2 * sigma * sigma));
      if (weight < 1e-14) return;
      const v = vectors.subarray(a * n, (a + 1) * n);
      for (let i = 0; i < n; i++) {
        const factor = weight * v[i];
        if (factor !== 0) for (let j = 0, at = i * n; j <= i; j++, at++) q[at] += factor * v[j];
      }
    });
    const degree = new Float64Array(n);
    let diagonal = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
      const value = q[i * n + j] >= epsilon ? q[i * n + j] : 0;
      q[i * n + j] = q[j * n + i] = value;
      degree[i] += value;
      if (j < i) degree[j] += value; else diagonal += value;
    }
    const kept = degree.reduce((sum, value) => sum + value, 0);
    diagonalShare = kept > 0 ? diagonal / kept : null;
    for (let i = 0; i < n; i++) for (let j = 0; j < n; j++)
      if (q[i * n + j] !== 0) q[i * n + j] /= Math.sqrt(degree[i] * degree[j]);
    return q;
  };
  const measure = q => {
    let entries = 0, empty = 0, share = 0;
    for (let i = 0; i < n; i++) {
      let row = 0, others = 0, same = 0;
      for (let j = 0; j < n; j++) if (q[i * n + j] !== 0) {
        row++;
        if (j !== i) { others++; if (data.labels && data.labels[j] === data.labels[i]) same++; }
      }
      entries += row;
      if (row === 0) empty++;
      if (others > 0) share += same / others;
    }
    return { entries, empty, density: entries / (n * n), homophily: data.labels ? share / n : null };
  };
  const shown = name => section.querySelector(`[data-show=${name}]`);
  const say = (name, text) => { shown(name).textContent = text; };
  const slider = name => section.querySelector(`[data-move=${name}]`);

  // Vertices stand class by class, as in the figure above.
  const order = Array.from({ length: n }, (_, vertex) => vertex);
  if (data.labels) order.sort((a, b) => data.labels[a] - data.labels[b] || a - b);
  const canvas = section.querySelector("[data-draw=pattern]"), context = canvas.getContext("2d");
  canvas.width = canvas.height = n;
  let q = null;
  const drawPattern = () => {
    let largest = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) largest = Math.max(largest, q[i * n + j]);
    const image = context.createImageData(n, n); // black, more or less transparent: the page inverts it when dark
    for (let r = 0; r < n; r++) for (let c = 0; c < n; c++) {
      const value = q[order[r] * n + order[c]];
      if (value > 0) image.data[4 * (r * n + c) + 3] = 30 + 225 * Math.min(1, Math.sqrt(value / (largest || 1)));
    }
    context.putImageData(image, 0, 0);
  };
  // The entry under a pointer, or where the arrow keys have gone.
  const cell = { row: 0, column: 0 };
  const named = vertex => `vertex ${vertex}` + (data.labels ? ` (class ${data.labels[vertex]})` : "");
  const readCell = () => {
    const rect = canvas.getBoundingClientRect(), size = rect.width / n;
    const [i, j] = [order[cell.row], order[cell.column]];
    const top = rect.top + size * cell.row;
    reading.show(`${named(i)}\n${named(j)}\n${q[i * n + j].toPrecision(3)}`, rect.left + size * (cell.column + 0.5), top, top + size);
  };
  const within = value => Math.max(0, Math.min(n - 1, value));
  const pointAt = event => {
    const rect = canvas.getBoundingClientRect();
    cell.row = within(Math.floor((event.clientY - rect.top) / rect.height * n));
    cell.column = within(Math.floor((event.clientX - rect.left) / rect.width * n));
    readCell();
  };
  canvas.addEventListener("pointermove", pointAt);
  canvas.addEventListener("pointerdown", pointAt);
  canvas.addEventListener("pointerleave", event => { if (event.pointerType === "mouse") reading.hide(); });
  canvas.addEventListener("blur", reading.hide);
  canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) readCell(); });
  const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  canvas.addEventListener("keydown", event => {
    if (event.key === "Escape") return reading.hide();
    if (!moves[event.key]) return;
    event.preventDefault();
    cell.row = within(cell.row + moves[event.key][0]);
    cell.column = within(cell.column + moves[event.key][1]);
    readCell();
  });

  const bins = new Array(50).fill(0);
  data.eigenvalues.forEach(e => bins[Math.min(49, Math.max(0, Math.floor((e + 1) * 25)))]++);
  const tallest = Math.max(...bins), floor = 290, x = e => 16 + 288 * (e + 1) / 2, y = share => floor - 275 * share;
  const bars = bins.map((count, b) => count ? `<rect x="${x(-1 + b / 25)}" y="${y(count / tallest)}" width="5.2" height="${floor - y(count / tallest)}" fill="var(--faint)"/>` : "").join("");
  const ticks = [-1, -0.5, 0, 0.5, 1].map(e => `<text x="${x(e)}" y="303" font-size="10" text-anchor="middle" fill="currentColor">${String(e).replace("-", "\u2212")}</text>`).join("");
  const drawWindow = (mu, sigma) => {
    let line = "";
    for (let s = 0; s <= 400; s++) {
      const e = -1 + s / 200;
      line += (s ? "L" : "M") + x(e).toFixed(1) + " " + y(Math.exp(-((e - mu) ** 2) / (2 * sigma * sigma))).toFixed(1);
    }
    section.querySelector("[data-draw=window]").innerHTML = bars +
      `<path d="${line}" fill="none" stroke="var(--series-0)" stroke-width="2"/><line x1="16" y1="${floor}" x2="304" y2="${floor}" stroke="currentColor"/>` + ticks +
      `<text x="160" y="318" font-size="10" text-anchor="middle" fill="currentColor">eigenvalue of L</text>`;
  };

  const written = epsilon => epsilon < 0.001 ? epsilon.toExponential(1) : epsilon.toPrecision(2);
  const state = { mu: data.mu, sigma: data.sigma, epsilon: data.epsilon };
  const redraw = () => {
    const { mu, sigma, epsilon } = state;
    say("mu", mu.toFixed(2));
    say("sigma", sigma.toFixed(2));
    say("epsilon", written(epsilon));
    q = kernel(mu, sigma, epsilon);
    const found = measure(q);
    say("entries", found.entries);
    say("density", (100 * found.density).toFixed(2) + " %");
    say("empty", found.empty);
    say("diagonal", diagonalShare === null ? "nothing kept" : (100 * diagonalShare).toFixed(1) + " %");
    say("homophily", found.homophily === null ? "no labels" : found.homophily.toFixed(4));
    shown("identity").hidden = diagonalShare === null || diagonalShare <= 0.99;
    drawPattern();
    drawWindow(mu, sigma);
  };
  say("order", (data.labels ? "The kernel, vertices by class" : "The kernel") + "; stronger ink for larger entries.");
  slider("mu").value = data.mu;
  slider("sigma").value = data.sigma;
  slider("epsilon").value = Math.log10(data.epsilon);
  for (const name of Object.keys(state)) slider(name).addEventListener("input", () => {
    const value = +slider(name).value;
    state[name] = name === "epsilon" ? 10 ** value : value;
    if (name === "epsilon") slider(name).setAttribute("aria-valuetext", written(state.epsilon));
    redraw();
  });
  redraw();
  return { kernel, measure };
};
window.qdc = [...document.querySelectorAll(".by-hand")].map(byHand);
