import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';

/** With this set, the pictures are written again instead of compared. */
const UPDATE = process.env['BERTH_UPDATE_SNAPSHOTS'] === '1';
/** A pixel differs if a channel does by more than this, of 255: edges of letters differ between machines. */
const CHANNEL_TOLERANCE = 40;
/** So many pixels may differ. Another colour, a missing panel or a shifted row are more. */
export const MAX_DIFFERENT_SHARE = 0.005;
const FONT = join(
  dirname(createRequire(import.meta.url).resolve('vitepress/package.json')),
  'dist/client/theme-default/fonts/inter-roman-latin.woff2',
);

/** One font of our own: those of the machine do not matter. What moves, and what is measured, is hidden. */
function snapshotStyle(): string {
  return `
    @font-face {
      font-family: Snapshot;
      font-weight: 100 900;
      src: url(data:font/woff2;base64,${readFileSync(FONT).toString('base64')});
    }
    :root { --font: Snapshot !important; --mono: Snapshot !important; }
    *, ::before, ::after { animation: none !important; transition: none !important; }
    * { caret-color: transparent !important; }
    .u-wrap { visibility: hidden !important; }
    ::-webkit-scrollbar { display: none; }`;
}

/** Times, durations, ids and addresses become the same text in every run. */
const FIX_TEXTS = `(replaced) => {
  for (const time of document.querySelectorAll('time')) time.textContent = '5 min ago';
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const fix = (text) => {
    for (const [found, shown] of replaced) text = text.replaceAll(found, shown);
    return text
      .replaceAll(/(?:sync-)?[0-9a-f]{8}[-…][0-9a-f…-]*-u1/g, '0199-job')
      .replaceAll(/("(?:delayTime|executionTime)": )\\d+/g, '$17')
      .replaceAll(/("workerId": ")[^"]+/g, '$10199-worker')
      .replaceAll(/\\b\\d+(?:\\.\\d+)? (?:ms|s|min|h)\\b/g, '7 s')
      .replaceAll(location.host, 'berth.example');
  };
  while (texts.nextNode()) {
    const fixed = fix(texts.currentNode.data);
    if (fixed !== texts.currentNode.data) texts.currentNode.data = fixed;
  }
}`;

/** Compares two pictures in the browser: it has all that is needed for that. */
const COMPARE = `async ([expected, actual, tolerance]) => {
  const read = async (base64) => {
    const bitmap = await createImageBitmap(await (await fetch('data:image/png;base64,' + base64)).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext('2d');
    context.drawImage(bitmap, 0, 0);
    return { canvas, context, image: context.getImageData(0, 0, bitmap.width, bitmap.height) };
  };
  const [before, after] = [await read(expected), await read(actual)];
  const { width, height, data } = after.image;
  if (before.image.width !== width || before.image.height !== height) return { share: 1, picture: actual };
  let different = 0;
  for (let at = 0; at < data.length; at += 4) {
    const differs = [0, 1, 2].some((channel) =>
      Math.abs(data[at + channel] - before.image.data[at + channel]) > tolerance);
    different += differs;
    const faded = 255 - (255 - data[at + 1]) / 4;
    data.set(differs ? [255, 0, 0, 255] : [faded, faded, faded, 255], at);
  }
  after.context.putImageData(after.image, 0, 0);
  const bytes = new Uint8Array(await (await after.canvas.convertToBlob()).arrayBuffer());
  return {
    share: different / (width * height),
    picture: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')),
  };
}`;

/** Texts that are others in every run, such as ids; where they are a map, with what is shown instead. */
export type ChangingTexts = readonly string[] | ReadonlyMap<string, string>;

export interface Difference {
  /** Of the pixels. */
  share: number;
  /** PNG in base64: what differs is red. */
  picture: string;
}

/** Pictures of pages, compared with those in a folder. */
export class PageSnapshots {
  readonly #folder: string;
  readonly #style = snapshotStyle();
  readonly #comparer: Promise<Page>;

  constructor(browser: Browser, folder: string) {
    this.#folder = folder;
    this.#comparer = browser.newPage();
  }

  async take(page: Page, changing: ChangingTexts): Promise<Buffer> {
    await page.addStyleTag({ content: this.#style });
    await page.evaluate('document.fonts.load("14px Snapshot").then(() => document.fonts.ready)');
    await page.evaluate(`(${FIX_TEXTS})(${JSON.stringify(replacements(changing))})`);
    return page.screenshot({ animations: 'disabled', caret: 'hide' });
  }

  async compare(expected: Buffer, actual: Buffer): Promise<Difference> {
    const given = JSON.stringify([expected.toString('base64'), actual.toString('base64'), CHANNEL_TOLERANCE]);
    return (await this.#comparer).evaluate<Difference>(`(${COMPARE})(${given})`);
  }

  /** Fails where a page looks different; the picture of the difference says where. */
  async assertSame(name: string, page: Page, changing: ChangingTexts): Promise<void> {
    const actual = await this.take(page, changing);
    const file = join(this.#folder, `${name}.png`);
    if (UPDATE) {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(file, actual);
      return;
    }
    assert.ok(existsSync(file), `there is no picture ${file}; make it with BERTH_UPDATE_SNAPSHOTS=1`);
    const { share, picture } = await this.compare(readFileSync(file), actual);
    if (share <= MAX_DIFFERENT_SHARE) return;
    const failed = join(this.#folder, 'failed');
    mkdirSync(failed, { recursive: true });
    writeFileSync(join(failed, `${name}.png`), actual);
    writeFileSync(join(failed, `${name}.difference.png`), Buffer.from(picture, 'base64'));
    assert.fail(
      `${name} looks different: ${(share * 100).toFixed(1)} % of the pixels, see ${failed}; ` +
        'if that is meant, write the pictures anew with BERTH_UPDATE_SNAPSHOTS=1',
    );
  }
}

function replacements(changing: ChangingTexts): [found: string, shown: string][] {
  if (!Array.isArray(changing)) return [...(changing as ReadonlyMap<string, string>)];
  return (changing as readonly string[]).map((text) => [text, 'x'.repeat(Math.min(text.length, 14))]);
}
