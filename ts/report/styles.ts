/**
 * The report's style sheet. Colours of outcomes and roles keep apart under colour blindness and reach 4.5:1 on their
 * surface in both themes; every colour is doubled by a glyph, a word or a shape.
 */
export const styles = `
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --surface: #ffffff; --ink: #1b1f24; --muted: #5b6470; --line: #d9dee5; --soft: #eef1f5;
  --accent: #0b5cad; --method: #0b5cad; --reference: #5b6470; --control: #9a4d00; --baseline: #1b1f24;
  --gain: #0072b2; --loss: #c24100; --neutral: #9fb4cb;
  --success: #0072b2; --failure: #c24100; --limit: #6b5a00;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1216; --surface: #171b21; --ink: #e6e9ed; --muted: #a2acb8; --line: #2d343d; --soft: #20262e;
    --accent: #6db8ff; --method: #6db8ff; --reference: #a2acb8; --control: #f0a35c; --baseline: #e6e9ed;
    --gain: #56b4e9; --loss: #f2803a; --neutral: #4c6178;
    --success: #56b4e9; --failure: #f2803a; --limit: #f0e442;
  }
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 24px; }
header { padding-top: 40px; padding-bottom: 8px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 0 0 4px; letter-spacing: -0.005em; }
h3 { font-size: 15px; margin: 0; }
.lead, .muted { color: var(--muted); }
.lead { margin: 0; }
nav { margin-top: 18px; display: flex; flex-wrap: wrap; gap: 6px 18px; }
section { margin: 24px 0; padding: 22px 24px; background: var(--surface); border: 1px solid var(--line);
  border-radius: 10px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: 14px; margin: 22px 0 0; }
.card { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 14px 18px; }
.card .name { color: var(--muted); font-size: 13px; }
.card .figure { font-size: 26px; font-weight: 650; line-height: 1.3; letter-spacing: -0.01em; }
.card .detail { font-size: 13px; color: var(--muted); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 14px 0; font-size: 14px; }
caption { text-align: left; color: var(--muted); font-size: 13px; padding-bottom: 6px; }
th, td { padding: 7px 7px; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; font-size: 13px; color: var(--muted); vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; padding-left: 6px; white-space: normal; }
tbody th { color: var(--ink); font-size: inherit; }
tbody tr:last-child > * { border-bottom: 0; }
tr.baseline > * { background: var(--soft); }
td.note { white-space: normal; text-align: left; color: var(--muted); font-size: 13px; }
.tag { font-size: 11px; font-weight: 600; padding: 1px 7px; border-radius: 99px; border: 1px solid currentColor;
  margin-left: 8px; vertical-align: 1px; }
.tag.control { color: var(--control); } .tag.baseline { color: var(--muted); }
.tag.method { color: var(--method); } .tag.reference { color: var(--reference); }
figure { margin: 16px 0; }
figcaption { font-size: 13px; color: var(--muted); margin-bottom: 4px; }
figure svg { max-width: 100%; height: auto; }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(310px, 1fr)); gap: 4px 20px; }
details { margin: 12px 0; }
summary { cursor: pointer; font-weight: 600; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 2px 18px; margin: 8px 0; font-size: 13px; }
dl.facts dt { color: var(--muted); } dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.example { border-top: 1px solid var(--line); padding: 16px 0 4px; }
.example:first-of-type { border-top: 0; }
.instruction { margin: 4px 0 10px; padding-left: 12px; border-left: 3px solid var(--line); }
.outcome { font-weight: 600; }
.outcome.success { color: var(--success); } .outcome.failure { color: var(--failure); }
.outcome.limit { color: var(--limit); }
.step { display: grid; grid-template-columns: minmax(0, 300px) minmax(0, 1fr); gap: 8px 20px; margin: 14px 0;
  align-items: start; }
@media (max-width: 760px) { .step { grid-template-columns: 1fr; } section { padding: 16px; }
  header, main, footer { padding: 0 12px; } }
.shot { position: relative; border: 1px solid var(--line); border-radius: 6px; overflow: hidden; background: #fff; }
.shot img { display: block; width: 100%; height: auto; }
.shot .point { position: absolute; width: 18px; height: 18px; margin: -9px 0 0 -9px; border-radius: 50%;
  border: 2px solid #fff; outline: 2px solid #c2185b; background: #c2185b55; }
.noshot { padding: 24px 12px; color: #5b6470; font-size: 13px; }
.candidates { list-style: none; margin: 4px 0 0; padding: 0; }
.candidates li { display: grid; grid-template-columns: 18px minmax(0, 1fr) 170px; gap: 2px 8px; padding: 5px 0;
  border-bottom: 1px dotted var(--line); }
.candidates li:last-child { border-bottom: 0; }
.candidates .chosen { font-weight: 650; }
.candidates .thought { grid-column: 2; color: var(--muted); font-size: 13px; font-weight: 400; }
.value { display: grid; grid-template-columns: 1fr 48px; gap: 8px; align-items: center; }
.value .number { text-align: right; font-size: 13px; }
.bar { position: relative; height: 14px; background: var(--soft); border-radius: 3px; overflow: hidden; }
.bar i { position: absolute; inset: 0 auto 0 0; background: var(--accent); opacity: 0.35; }
.chosen .bar i { opacity: 0.75; }
.bar b { position: absolute; top: 0; bottom: 0; width: 2px; background: var(--control); }
.result { font-size: 13px; color: var(--muted); margin: 6px 0 0; }
footer { padding-top: 8px; padding-bottom: 48px; font-size: 13px; color: var(--muted); }
@media print { nav { display: none; } section, .card { border-color: #bbb; break-inside: avoid; }
  body { background: #fff; } }
`;
