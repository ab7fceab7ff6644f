// Reads pairs of texts as js-yaml does, and prints the pairs that differ.
const yaml = require("js-yaml");

const fields = (text) => {
  const found = /^\uFEFF?---[ \t]*\r?\n([\s\S]*?)\r?\n---[ \t]*(\r?\n|$)/.exec(text);
  try {
    const value = found ? yaml.load(found[1]) : null;
    return value && typeof value === "object" ? JSON.stringify(value) : null;
  } catch {
    return null;
  }
};

const pairs = JSON.parse(require("fs").readFileSync(0, "utf8"));
pairs.forEach(([before, after], index) => {
  const value = fields(before);
  if (value !== null && value !== fields(after)) {
    console.log(index, "js-yaml");
  }
});
