import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runBerth } from '../cli-test-harness.ts';
import type { CliResult } from '../cli-test-harness.ts';
import { startFakeApiServer } from '../fake-api-server.ts';

/** What a command prints as text, with a server that gives these answers. */
async function run(
  answers: Parameters<typeof startFakeApiServer>[0],
  argv: readonly string[],
  input = '',
): Promise<CliResult> {
  await using server = await startFakeApiServer(answers);
  return await runBerth([...argv, '-o', 'table'], {
    env: { BERTH_URL: server.url, BERTH_API_KEY: 'rpa_MINE' },
    input,
  });
}

test('billing ends with the sum, in the table only', async () => {
  const records = [
    { startTime: '2026-01-01T00:00:00Z', accountName: 'ann', totalAmount: 1.25 },
    { startTime: '2026-01-01T00:00:00Z', accountName: 'bob', totalAmount: 2 },
  ];
  const answers = { 'GET /v2/billing/accounts?bucketSize=day&lastN=30': { body: { records } } };
  const { out } = await run(answers, ['billing', '--accounts']);
  assert.equal(
    out.replaceAll(/ +/g, ' '),
    'FROM OF TOTAL $\n2026-01-01 00:00 ann 1.2500\n2026-01-01 00:00 bob 2.0000\ntotal - 3.2500\n',
  );
  const refused = await run(answers, ['billing', 'pods', '--accounts']);
  assert.deepEqual([refused.code, refused.out], [2, '']);
});

test('metrics leave out steps in which nothing happened, and end with all of it', async () => {
  const idle = { cpu: null, memory: null, gpu: null, gpuMemory: null, cost: 0 };
  const busy = { ...idle, cpu: { average: 0.5, max: 1 }, memory: { average: 2e6, max: 2e6 }, cost: 0.5 };
  const points = [
    { at: '2026-01-01T00:00:00Z', ...idle },
    { at: '2026-01-01T00:01:00Z', ...busy },
  ];
  const { out } = await run(
    {
      'GET /v2/pods': { body: { pods: [{ id: 'p1', name: 'lab' }] } },
      'GET /v2/pods/p1/metrics?range=6h': { body: { points, total: busy } },
    },
    ['pod', 'metrics', 'lab', '--range', '6h'],
  );
  assert.equal(
    out.replaceAll(/ +/g, ' '),
    'FROM CPU MEMORY GPU GPU MEMORY $\n2026-01-01 00:01 0.5 2.0 MB - - 0.5000\nall of it 0.5 2.0 MB - - 0.5000\n',
  );
});

test('events are a line each, and control characters in them are not sent to the terminal', async () => {
  const event = { type: 'pod.changed', at: '2026-01-01T10:20:30.400Z', podId: 'p1', name: 'a\u001b[2J' };
  const { out } = await run(
    { 'GET /v2/events?types=pod': { text: `data: {"type":"ready"}\n\ndata: ${JSON.stringify(event)}\n\n` } },
    ['events', '--type', 'pod'],
  );
  assert.equal(out, 'ready\n10:20:30.400  pod.changed  podId=p1 name=a\\u001b[2J\n');
});

test('an SSH key is named by its comment, and two with the same comment are not guessed', async () => {
  const keys = ['ssh-ed25519 AAA me', 'ssh-ed25519 BBB me'];
  const answers = { 'GET /v2/account/ssh-keys': { body: { keys } } };
  const both = await run(answers, ['ssh-key', 'rm', 'me']);
  assert.match(both.err, /2 SSH keys have the comment "me"; name the key itself/);
  const none = await run(answers, ['ssh-key', 'rm', 'you']);
  assert.match(none.err, /there is no SSH key "you"/);
  const known = await run(answers, ['ssh-key', 'add', '-'], `${keys[0]}\n`);
  assert.equal(known.out.split('\n').length, 4);
  const secret = await run(answers, ['ssh-key', 'add', '-'], '-----BEGIN OPENSSH PRIVATE KEY-----\n');
  assert.match(secret.err, /a private key, which stays on your machine/);
});
