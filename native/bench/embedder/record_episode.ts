/**
 * Records the episode that the benchmark replays: ten steps on page.html in a real browser, with the prompts that the
 * agent would embed, as token ids.
 *
 *     node --import tsx native/bench/embedder/record_episode.ts TOKENIZER_FOLDER [BROWSER]
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import puppeteer, { type Page } from 'puppeteer';
import sharp from 'sharp';
import { actionPrompt, type PastStep, statePrompt, taskPrompt } from '../../../ts/learning/templates.js';
import { PromptTokenizer } from '../../../ts/learning/tokenizer.js';

const instruction = 'Book the cheapest ferry from Haven to Stora on 14 June for one person with a bicycle.';

interface Move {
  action: PastStep['action'];
  thought: string;
  note?: string;
  ok?: boolean;
  message: string;
  run: (page: Page) => Promise<unknown>;
}

const type = (id: string, text: string) => (page: Page) => page.type(`#${id}`, text);
const moves: Move[] = [
  {
    action: { type: 'write', element: 'textbox "From"', text: 'Haven' },
    thought: 'The form asks for the port of departure first.',
    message: 'wrote "Haven" into textbox "From"',
    run: type('from', 'Haven'),
  },
  {
    action: { type: 'write', element: 'textbox "To"', text: 'Stora' },
    thought: 'Now the destination.',
    message: 'wrote "Stora" into textbox "To"',
    run: type('to', 'Stora'),
  },
  {
    action: { type: 'click', element: 'link "Fares"' },
    thought: 'The fares might be listed on a page of their own.',
    message: 'clicked link "Fares"; the page did not change',
    run: async () => undefined,
  },
  {
    action: { type: 'write', element: 'textbox "Date"', text: '14 June' },
    thought: 'The date is still missing.',
    message: 'wrote "14 June" into textbox "Date"',
    run: type('date', '14 June'),
  },
  {
    action: { type: 'select', element: 'combobox "Vehicle"', option: 'bicycle' },
    thought: 'One person travels with a bicycle.',
    message: 'selected "bicycle" in combobox "Vehicle"',
    run: (page) => page.select('#cars', 'bicycle'),
  },
  {
    action: { type: 'click', element: 'button "Search sailings"' },
    thought: 'Everything is filled in.',
    message: 'clicked button "Search sailings"',
    run: (page) => page.click('#go'),
  },
  {
    action: { type: 'click', element: 'column "Fare"' },
    thought: 'Sorting by fare would show the cheapest sailing.',
    ok: false,
    message: 'no element matches column "Fare"',
    run: async () => undefined,
  },
  {
    action: { type: 'wait' },
    thought: 'The table may still be loading.',
    message: 'waited; the page did not change',
    run: async () => undefined,
  },
  {
    action: { type: 'click', element: 'link "Choose" in the row of 17:45' },
    thought: 'The sailing at 17:45 costs 19.00, less than all others.',
    note: 'cheapest: 17:45 for 19.00',
    message: 'clicked link "Choose"',
    run: (page) => page.click('#row4 a'),
  },
];

async function main(): Promise<void> {
  const [tokenizerFolder, browserPath] = process.argv.slice(2);
  if (tokenizerFolder === undefined) throw new Error('usage: record_episode.ts TOKENIZER_FOLDER [BROWSER]');
  const folder = fileURLToPath(new URL('episode', import.meta.url));
  const tokenizer = await PromptTokenizer.load(tokenizerFolder);
  const ids = (pieces: Parameters<PromptTokenizer['encode']>[0]): number[] => [...tokenizer.encode(pieces)];
  const browser = await puppeteer.launch({
    ...(browserPath === undefined ? {} : { executablePath: browserPath }),
    args: ['--no-sandbox', '--hide-scrollbars'],
    defaultViewport: { width: 1280, height: 720 },
  });
  try {
    const page = await browser.newPage();
    await page.goto(pathToFileURL(join(folder, 'page.html')).href);
    // A blinking caret would make equal screens differ by chance.
    await page.addStyleTag({ content: '* { caret-color: transparent; }' });
    const history: PastStep[] = [];
    const steps: { state: number[]; actions: number[][]; task: number[]; screenshot: string }[] = [];
    for (let index = 0; index <= moves.length; index++) {
      const screenshot = `step-${index}.webp`;
      const png = await page.screenshot();
      await sharp(png).removeAlpha().webp({ lossless: true, effort: 6 }).toFile(join(folder, screenshot));
      const candidates = [0, 2, 5].map((offset) => moves[(index + offset) % moves.length] as Move);
      steps.push({
        state: ids(statePrompt({ instruction, history })),
        actions: candidates.map(({ action, thought, note = '' }) => ids(actionPrompt({ action, thought, note }))),
        task: ids(taskPrompt(instruction)),
        screenshot,
      });
      const move = moves[index];
      if (move === undefined) break;
      await move.run(page);
      const { action, thought, note = '', ok = true, message } = move;
      history.push({ action, thought, note, result: { ok, message } });
    }
    await writeFile(join(folder, 'steps.json'), `${JSON.stringify({ steps })}\n`);
  } finally {
    await browser.close();
  }
}

await main();
