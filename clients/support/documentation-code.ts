import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

/** What the pages write where each reader has something else. */
export interface DocumentationReader {
  url: string;
  key: string;
  endpointId?: string;
}

/**
 * The code of a page, as it is written, with the reader's own address, key and endpoint. `number` counts the
 * blocks of that language from 0.
 */
export function documentationCode(
  page: string,
  language: string,
  number: number,
  { url, key, endpointId = '' }: DocumentationReader,
): string {
  const text = readFileSync(new URL(`../../docs/clients/${page}`, import.meta.url), 'utf8');
  const code = [...text.matchAll(new RegExp(`^\`\`\`${language}(?: \\[.*\\])?\n([\\s\\S]*?)^\`\`\`$`, 'gm'))][
    number
  ]?.[1];
  assert.ok(code !== undefined, `${page} has no ${language} block ${number}`);
  return code
    .replaceAll('http://127.0.0.1:8484', url)
    .replaceAll('YOUR_KEY', key)
    .replaceAll('ENDPOINT_ID', endpointId);
}

/** The variables that a shell block of a page sets. */
export function documentedVariables(
  page: string,
  number: number,
  reader: DocumentationReader,
): Record<string, string> {
  const lines = documentationCode(page, 'sh', number, reader).replaceAll(
    '$(cat .berth/root.key)',
    reader.key,
  );
  return Object.fromEntries(
    [...lines.matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
  );
}
