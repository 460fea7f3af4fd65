import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ConformanceCheck, Outcome } from '../conformance/conformance-check.ts';
import { apiUrls, parseOptions } from '../conformance/conformance-options.ts';
import { CHECKS } from '../conformance/all-checks.ts';
import { examplesFixture } from '../packages/testing/src/examples-fixture.ts';

const RUN = fileURLToPath(new URL('../conformance/run.ts', import.meta.url));

async function run(...words: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [RUN, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ran = { code: null as number | null, stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (ran.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ran.stderr += text));
  [ran.code] = (await once(child, 'close')) as [number | null];
  return ran;
}

type Line = Pick<ConformanceCheck, 'group' | 'name'> & { outcomes: Outcome[] };

describe('the conformance suite', () => {
  const fixture = examplesFixture();

  test('finds what clients expect', async () => {
    const { json } = await fixture.berth<{ id: string }>(
      'deploy',
      'local/echo',
      '--name',
      'conformance-echo',
    );
    const { url, key } = fixture.server;
    const { stdout, stderr } = await run(
      '--url',
      url,
      '--key',
      key,
      '--worker-token',
      key,
      '--endpoint',
      json.id,
      '--pods',
      '--json',
    );
    const lines = JSON.parse(stdout) as Line[];
    assert.equal(lines.length, CHECKS.length, stderr);
    assert.deepEqual(
      lines.filter(({ outcomes }) => outcomes[0]?.result !== 'passed'),
      [],
    );
  });

  test('leaves nothing behind', async () => {
    const client = fixture.server.client();
    for (const path of [
      '/v2/templates',
      '/v2/serverless',
      '/v2/pods',
      '/v2/network-volumes',
      '/v2/registries',
      '/v2/account/secrets',
    ]) {
      const { text } = await client.call('GET', path);
      assert.ok(
        !text.includes('"conformance-') || path === '/v2/serverless',
        `${path}: ${text.slice(0, 300)}`,
      );
    }
  });

  test('shows two deployments side by side, skips with a reason, and fails with 1', async () => {
    const { url, key } = fixture.server;
    const { code, stdout } = await run(
      '--url',
      url,
      '--key',
      key,
      '--against',
      url,
      '--key2',
      'rpa_wrong',
      '--only',
      'jobs',
    );
    assert.equal(code, 1, stdout);
    assert.match(stdout, /^jobs +first +second$/m);
    assert.match(stdout, /cancel ends a job that waits, and stays so +ok +FAILED/);
    assert.match(stdout, /first: no --worker-token was given/);
    assert.match(stdout, /^first: \d+ passed, 0 failed, \d+ skipped$/m);
  });

  test('prints its usage for invalid arguments', async () => {
    const { code, stderr } = await run('--url', 'http://127.0.0.1:1');
    assert.equal(code, 2);
    assert.match(stderr, /npm run conformance -- --url URL --key KEY/);
    assert.equal(parseOptions(['--url', 'u', '--key', 'k', '--against', 'v']), undefined);
    assert.equal(parseOptions(['--nonsense']), undefined);
  });

  test('takes one origin, or an address for each interface', () => {
    assert.deepEqual(apiUrls('http://h:1/'), {
      v1: 'http://h:1/v1',
      v2: 'http://h:1/v2',
      jobs: 'http://h:1/v2',
      graphql: 'http://h:1/graphql',
    });
    assert.deepEqual(
      apiUrls('v1=https://a/v1,v2=https://b/v2,jobs=https://c/v2/,graphql=https://b/graphql'),
      { v1: 'https://a/v1', v2: 'https://b/v2', jobs: 'https://c/v2', graphql: 'https://b/graphql' },
    );
  });
});
