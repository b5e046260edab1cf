// Sorting: numbers as numbers, words as words; a second press turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.querySelectorAll("th").forEach(other => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const cell = row => row.cells[column].textContent.trim();
      [...body.rows].sort((a, b) => {
        const [x, y] = [cell(a), cell(b)], [u, v] = [parseFloat(x), parseFloat(y)];
        return sign * (Number.isNaN(u) || Number.isNaN(v) ? x.localeCompare(y) : u - v);
      }).forEach(row => body.appendChild(row));
    });
  });
}

// The kernel: Q = sum over a of exp(-(E_a - mu)^2 / 2 sigma^2) phi_a phi_a^T, kept where >= epsilon, then
// D^-1/2 Q D^-1/2 with D the row sums of what was kept.
if (data) {
  const n = data.nodes;
  const bytes = Uint8Array.from(atob(data.vectors), letter => letter.charCodeAt(0));
  const vectors = new Float32Array(bytes.buffer);
  const kernel = (mu, sigma, epsilon) => {
    const q = new Float64Array(n * n);
    data.eigenvalues.forEach((energy, a) => {
      const weight = Math.exp(-((energy - mu) ** 2) / (2 * sigma * sigma));
      if (weight < 1e-12) return;
      const v = vectors.subarray(a * n, (a + 1) * n);
      for (let i = 0; i < n; i++) {
        const factor = weight * v[i];
        if (factor !== 0) for (let j = 0, at = i * n; j <= i; j++, at++) q[at] += factor * v[j];
      }
    });
    const degree = new Float64Array(n);
    for (let i = 0; i < n; i++) for (let j = 0; j <= i; j++) {
      const value = q[i * n + j] >= epsilon ? q[i * n + j] : 0;
      q[i * n + j] = q[j * n + i] = value;
      degree[i] += value;
      if (j < i) degree[j] += value;
    }
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
  const get = id => document.getElementById(id);
  const canvas = get("pattern");
  canvas.width = canvas.height = n;
  const context = canvas.getContext("2d");
  const drawWindow = (mu, sigma) => {
    const bins = new Array(50).fill(0);
    data.eigenvalues.forEach(e => bins[Math.min(49, Math.max(0, Math.floor((e + 1) * 25)))]++);
    const tallest = Math.max(...bins);
    const x = e => 20 + 280 * (e + 1) / 2, y = share => 190 - 165 * share;
    let markup = bins.map((c, b) => c ? `<rect x="${x(-1 + b / 25)}" y="${y(c / tallest)}" width="5" height="${190 - y(c / tallest)}" fill="#b5b5b5"/>` : "").join("");
    let line = "";
    for (let s = 0; s <= 200; s++) { const e = -1 + s / 100; line += (s ? "L" : "M") + x(e).toFixed(1) + " " + y(Math.exp(-((e - mu) ** 2) / (2 * sigma * sigma))).toFixed(1); }
    markup += `<path d="${line}" fill="none" stroke="#1f3a6e" stroke-width="2"/><line x1="20" y1="190" x2="300" y2="190" stroke="#222"/>`;
    for (const e of [-1, -0.5, 0, 0.5, 1]) markup += `<text x="${x(e)}" y="203" font-size="10" text-anchor="middle" fill="#222">${e}</text>`;
    get("window").innerHTML = markup + `<text x="160" y="217" font-size="10" text-anchor="middle" fill="#222">eigenvalue of L; grey: how many, line: weight</text>`;
  };
  const redraw = () => {
    const mu = +get("mu").value, sigma = +get("sigma").value, epsilon = 10 ** +get("epsilon").value;
    get("mu-value").textContent = mu.toFixed(2);
    get("sigma-value").textContent = sigma.toFixed(2);
    get("epsilon-value").textContent = (+get("epsilon").value).toFixed(2);
    const q = kernel(mu, sigma, epsilon), found = measure(q);
    get("k-entries").textContent = found.entries;
    get("k-density").textContent = (100 * found.density).toFixed(2) + " %";
    get("k-empty").textContent = found.empty;
    get("k-homophily").textContent = found.homophily === null ? "no labels" : found.homophily.toFixed(4);
    let largest = 0;
    for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) largest = Math.max(largest, q[i * n + j]);
    const image = context.createImageData(n, n);
    for (let at = 0; at < n * n; at++) {
      const shade = q[at] > 0 ? 225 - 225 * Math.min(1, Math.sqrt(q[at] / (largest || 1))) : 255;
      image.data.set([shade, shade, shade, 255], 4 * at);
    }
    context.putImageData(image, 0, 0);
    drawWindow(mu, sigma);
  };
  get("mu").value = data.mu;
  get("sigma").value = data.sigma;
  get("epsilon").value = Math.log10(data.epsilon);
  for (const id of ["mu", "sigma", "epsilon"]) get(id).addEventListener("input", redraw);
  redraw();
  window.qdc = { kernel, measure };
}
