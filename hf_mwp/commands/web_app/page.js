"use strict";

const LINES_PER_REQUEST = 5; // at most MAX_PROBLEMS in server.py
const CHARACTERS_PER_REQUEST = 100000; // of several lines; a longer line has its own request
const MAX_LINES = 1000; // that the page solves in turn
const LINE_BREAK = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/; // as in Python's `str.splitlines`
const SVG = "http://www.w3.org/2000/svg";
const SIGNS = { "*": "×", "/": "÷", "-": "−" };
const LEVEL_HEIGHT = 52; // of the tree, in pixels
const MIN_LEAF_WIDTH = 56;

// What the page shows. A change of the language shows it again.
const state = {
  language: navigator.language.startsWith("zh") ? "zh" : "en",
  words: null, // language -> name -> text
  models: [], // their names
  examples: [],
  results: [], // solved problems, and requests that failed, in the order of the lines
  numLines: 0, // to be solved
  numSkipped: 0, // beyond MAX_LINES
  isBusy: false,
  isStopped: false,
  noServer: false,
};
let stopper = new AbortController();

function byId(id) {
  return document.getElementById(id);
}

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/** Return the words with a name in the chosen language, with `fields` filled in. */
function word(name, fields = {}) {
  let text = state.words[state.language][name];
  for (const [field, value] of Object.entries(fields)) text = text.replace(`{${field}}`, () => value);
  return text;
}

function percent(share) {
  return share > 0 && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

/** Return the nodes of a tree, given in prefix order: label, column, depth, and the children of an operator. */
function treeNodes(prefix, numbers) {
  const nodes = [];
  let numTokens = 0;
  let numLeaves = 0;

  function readSubtree(depth) {
    const token = prefix[numTokens++];
    const node = { depth, children: [] };
    nodes.push(node);
    if ("+-*/^".includes(token)) {
      node.label = SIGNS[token] || token;
      node.children = [readSubtree(depth + 1), readSubtree(depth + 1)];
      node.column = (node.children[0].column + node.children[1].column) / 2;
    } else {
      node.label = token.startsWith("N") ? numbers[Number(token.slice(1))] : token;
      node.column = numLeaves++;
    }
    return node;
  }

  readSubtree(0);
  return nodes;
}

function svgElement(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) node.setAttribute(attribute, value);
  node.textContent = text;
  return node;
}

function drawTree(answer) {
  const nodes = treeNodes(answer.prefix, answer.numbers);
  const longestLabel = Math.max(...nodes.map(node => node.label.length));
  const leafWidth = Math.max(MIN_LEAF_WIDTH, 18 + 10 * longestLabel);
  const width = leafWidth * nodes.filter(node => !node.children.length).length;
  const height = LEVEL_HEIGHT * (1 + Math.max(...nodes.map(node => node.depth)));
  const x = node => leafWidth * (node.column + 0.5);
  const y = node => LEVEL_HEIGHT * (node.depth + 0.5);

  const label = word("tree", { equation: answer.written });
  const svg = svgElement("svg", { class: "tree", viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": label });
  for (const parent of nodes) {
    for (const child of parent.children) {
      svg.append(svgElement("line", { x1: x(parent), y1: y(parent), x2: x(child), y2: y(child) }));
    }
  }
  for (const node of nodes) {
    const isOperator = node.children.length > 0;
    const halfWidth = isOperator ? 16 : Math.max(18, 8 + 5 * node.label.length);
    svg.append(
      svgElement("rect", {
        class: isOperator ? "operator" : "number",
        x: x(node) - halfWidth,
        y: y(node) - 16,
        width: 2 * halfWidth,
        height: 32,
        rx: isOperator ? 16 : 6,
      }),
      svgElement("text", { x: x(node), y: y(node) + 5 }, node.label),
    );
  }
  return svg;
}

/** Return plausibility, probability and violations of an answer. */
function certainty(answer) {
  const facts = [];
  if (answer.plausibility !== undefined) facts.push(`${word("plausibility")} ${percent(answer.plausibility)}`);
  facts.push(`${word("probability")} ${percent(answer.probability)}`);
  for (const violation of answer.violations) facts.push(violation[state.language]);
  return facts.join(" · ");
}

function showBest(answer) {
  const block = element("div", "best");
  const solution = element("div", "solution");
  const value = element("div", "value", answer.value);
  if (answer.decimal) value.append(element("span", "decimal", answer.decimal));
  solution.append(value, element("div", "written", answer.written));
  block.append(solution, drawTree(answer));
  return block;
}

function showCandidates(answers, isOpen) {
  const details = element("details");
  details.open = isOpen;
  const list = element("ul");
  for (const answer of answers) {
    const item = element("li");
    item.append(
      element("strong", "", answer.value),
      element("span", "equation", answer.written),
      element("span", "soft", certainty(answer)),
    );
    list.append(item);
  }
  details.append(element("summary", "", word("candidates")), list);
  return details;
}

/** Show the result of one solver. `isFirst` is true for the first problem, whose result explains the percentages. */
function showSolver(result, hasOthers, isFirst) {
  const section = element("section");
  if (hasOthers) section.append(element("h2", "", result.model));
  const [best, ...candidates] = result.answers;
  if (best) section.append(showBest(best));
  if (result.error) section.append(element("p", "error", result.error[state.language]));
  for (const warning of result.warnings) section.append(element("p", "warning", warning[state.language]));
  if (best) {
    section.append(element("p", "soft", `${certainty(best)} · ${result.milliseconds.toFixed(0)} ms`));
    if (isFirst) {
      const measure = best.plausibility === undefined ? "probability" : "plausibility";
      section.append(element("p", "soft", word(`${measure}_meaning`)));
    }
  }
  if (candidates.length) section.append(showCandidates(candidates, state.numLines === 1));
  return section;
}

function showProblem(problem, isFirst) {
  const article = element("article", "problem");
  const text = element("p", "text");
  for (const [part, isNumber] of problem.parts) text.append(element(isNumber ? "mark" : "span", "", part));
  const solvers = element("div", "solvers");
  const hasOthers = problem.results.length > 1;
  for (const result of problem.results) solvers.append(showSolver(result, hasOthers, isFirst));
  if (problem.parts.length) article.append(text);
  article.append(solvers);
  return article;
}

function showFailure(failure) {
  let text = word(failure.reason);
  if (state.numLines > 1) {
    const name = failure.first === failure.last ? "line" : "lines";
    text = `${word(name, failure)} ${text}`;
  }
  return element("p", "error", text);
}

function showResult(result, index) {
  return result.reason ? showFailure(result) : showProblem(result, index === 0);
}

function showStatus() {
  const numSolved = state.results.filter(result => !result.reason).length;
  const counts = { solved: numSolved, total: state.numLines };
  let status = "";
  if (state.isStopped) status = word("stopped", counts);
  else if (state.numLines > 1) status = word("progress", counts);
  else if (state.isBusy) status = word("solving");
  byId("status").textContent = status;

  const notices = [];
  if (state.noServer) notices.push(word("no_server"));
  if (state.numSkipped) notices.push(word("too_many", { limit: MAX_LINES, skipped: state.numSkipped }));
  byId("notice").textContent = notices.join(" ");
}

/** Show everything in the chosen language. */
function showPage() {
  document.documentElement.lang = state.language;
  document.title = word("title");
  for (const node of document.querySelectorAll("[data-word]")) node.textContent = word(node.dataset.word);
  byId("hint").textContent = word("hint", { models: state.models.join(" · ") });
  byId("language").textContent = word("language");
  byId("language").lang = state.language === "en" ? "zh" : "en";
  const examples = byId("examples");
  examples.setAttribute("aria-label", word("example"));
  examples.replaceChildren(element("option", "", word("example")));
  for (const example of state.examples) examples.append(element("option", "", example));
  showStatus();
  byId("results").replaceChildren(...state.results.map(showResult));
}

/** Return the index after the last line of the request that begins with the line `start`. */
function requestEnd(lines, start) {
  const limit = Math.min(start + LINES_PER_REQUEST, state.numLines);
  let numCharacters = lines[start].length;
  let end = start + 1;
  while (end < limit && numCharacters + lines[end].length <= CHARACTERS_PER_REQUEST) {
    numCharacters += lines[end].length;
    end += 1;
  }
  return end;
}

/**
 * Return the results of lines: solved problems or, if the server refused the lines, one result with the `reason`.
 * Returns `null` if the user stopped it, or if the server does not answer.
 */
async function requestResults(lines, first) {
  const body = JSON.stringify({ text: lines.join("\n") });
  try {
    const response = await fetch("/solve", { method: "POST", body, signal: stopper.signal });
    if (response.ok) return (await response.json()).problems;
    const reason = response.status === 413 ? "too_long" : "server_error";
    return [{ reason, first, last: first + lines.length - 1 }];
  } catch (error) {
    state.isStopped = true;
    state.noServer = error.name !== "AbortError";
    return null;
  }
}

function setBusy(isBusy) {
  state.isBusy = isBusy;
  byId("results").setAttribute("aria-busy", isBusy);
  // A button that is disabled would lose the focus.
  byId("solve").setAttribute("aria-disabled", isBusy);
  byId("examples").disabled = isBusy;
  const stop = byId("stop");
  if (!isBusy && document.activeElement === stop) byId("solve").focus();
  stop.hidden = !isBusy;
}

function startSolving(lines) {
  state.results = [];
  state.numLines = Math.min(lines.length, MAX_LINES);
  state.numSkipped = lines.length - state.numLines;
  state.isStopped = false;
  state.noServer = false;
  stopper = new AbortController();
  byId("results").replaceChildren();
  // A screen reader says one answer, but only the count of many.
  byId("results").setAttribute("aria-live", lines.length === 1 ? "polite" : "off");
  setBusy(true);
  showStatus();
}

function addResult(result) {
  state.results.push(result);
  byId("results").append(showResult(result, state.results.length - 1));
}

/** Solve the lines of the text in turn, and show each result as soon as it arrives. */
async function solve() {
  if (state.isBusy || !state.words) return;
  const lines = byId("text").value.split(LINE_BREAK).filter(line => line.trim());
  if (!lines.length) lines.push("");
  startSolving(lines);
  let start = 0;
  while (start < state.numLines && !state.isStopped) {
    const end = requestEnd(lines, start);
    const results = await requestResults(lines.slice(start, end), start + 1);
    if (results) results.forEach(addResult);
    showStatus();
    start = end;
  }
  setBusy(false);
  showStatus();
}

async function startPage() {
  const query = new URLSearchParams(location.search);
  if (["en", "zh"].includes(query.get("language"))) state.language = query.get("language");
  try {
    const response = await fetch("/models");
    const description = await response.json();
    state.words = description.words;
    state.models = description.models;
    state.examples = description.examples;
  } catch {
    byId("notice").textContent = "The server does not answer. Start hf-mwp app and reload the page.";
    return;
  }
  showPage();
  if (query.get("text")) {
    byId("text").value = query.get("text");
    await solve();
  } else {
    byId("text").focus();
  }
}

byId("form").addEventListener("submit", event => {
  event.preventDefault();
  solve();
});
byId("stop").addEventListener("click", () => stopper.abort());
byId("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) solve();
});
byId("examples").addEventListener("change", event => {
  if (event.target.selectedIndex) {
    byId("text").value = event.target.value;
    solve();
  }
});
byId("language").addEventListener("click", () => {
  state.language = state.language === "en" ? "zh" : "en";
  showPage();
});
startPage();
