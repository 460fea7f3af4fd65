import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogLine } from '../../domain/log-line.ts';
import { jobLogLines } from './job-log-lines.ts';

test('the log of a job has the lines that name it or no job, up to its end', async () => {
  const texts = [
    '{"requestId":"a","message":"Started."}',
    'printed',
    '{"requestId":"b","message":"Started."}',
    '{"broken',
    '{"requestId":null,"message":"x"}',
    'too late',
  ];
  async function* lines(): AsyncGenerator<LogLine> {
    for (const [index, line] of texts.entries())
      yield { ts: index, seq: index + 1, source: 'container', line };
  }
  const found: string[] = [];
  for await (const { line } of jobLogLines(lines(), 'a', 4)) found.push(line);
  assert.deepEqual(found, [texts[0], texts[1], texts[3], texts[4]]);
});
