import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CliError, UsageError } from '../cli.errors.ts';
import { readJobInput } from './job-input.ts';

const nothing = () => ReadableStream.from<Uint8Array>([]);
const read = async (word: string, stdin = nothing): Promise<string> => (await readJobInput(word, stdin)).text;

test('a job is sent unchanged, any other value becomes its input, digits kept', async () => {
  assert.equal(
    await read('{"input": {"n": 1.0}, "webhook": "http://x"}'),
    '{"input": {"n": 1.0}, "webhook": "http://x"}',
  );
  assert.equal(await read('{"n": 12345678901234567890}'), '{"input":{"n": 12345678901234567890}}');
  for (const value of ['[1]', '"text"', '7', 'null', 'true', '{}'])
    assert.equal(await read(value), `{"input":${value}}`);
});

test('from a file and from the standard input', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-job-'));
  await writeFile(join(folder, 'job.json'), '{"input": "from a file"}');
  assert.equal(await read(`@${join(folder, 'job.json')}`), '{"input": "from a file"}');
  await rm(folder, { recursive: true });
  await assert.rejects(
    read(`@${join(folder, 'job.json')}`),
    (error) => error instanceof CliError && /^there is no file /.test(error.message),
  );
  // A letter of more than one byte may come in two parts.
  const bytes = Buffer.from('"ä"');
  assert.equal(
    await read('-', () => ReadableStream.from([bytes.subarray(0, 2), bytes.subarray(2)])),
    '{"input":"ä"}',
  );
});

test('invalid JSON is a usage error', async () => {
  await assert.rejects(
    read('{"input"'),
    (error) => error instanceof UsageError && /^the job is not JSON: /.test(error.message),
  );
  await assert.rejects(
    read('-'),
    (error) => error instanceof UsageError && /^the standard input is not JSON/.test(error.message),
  );
});
