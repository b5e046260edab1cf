// Sorting: numbers as numbers, words as words, empty cells last; a second press turns the order round.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, column) => {
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      table.querySelectorAll("th").forEach(other => other.setAttribute("aria-sort", "none"));
      heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const keyed = [...body.rows].map(row => {
        const text = row.cells[column].textContent.trim();
        return { row, text, number: parseFloat(text) };
      });
      const numeric = keyed.every(({ text, number }) => text === "" || !Number.isNaN(number));
      keyed.sort((a, b) => {
        if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "");
        return sign * (numeric ? a.number - b.number : a.text.localeCompare(b.text));
      }).forEach(({ row }) => body.appendChild(row));
    });
  });
}

