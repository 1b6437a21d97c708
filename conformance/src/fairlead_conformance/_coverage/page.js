const field = document.querySelector("#filter");
const rows = [...document.querySelectorAll("table.ops tbody tr")];
const shown = document.querySelector("#shown");
function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    count += !row.hidden;
  }
  shown.textContent = `${count} of ${rows.length} ops`;
}
field.addEventListener("input", filter);
filter();
