import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { seed } from '../../../packages/testing/src/property-testing.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { installedPython } from '../python-programs.ts';

/** For each of the two documents. `FUZZ_SECONDS=600` looks longer. */
const SECONDS = Number(process.env['FUZZ_SECONDS'] ?? 45);
/**
 * It would limit its own requests. It cannot make tar streams, holds each event of a stream against the schema of the whole, which is text,
 * and takes a call that waits for a job, up to five minutes where no worker runs, for one that hangs.
 */
const LEFT_OUT = [
  '/v2/accounts/{accountId}/limits',
  '/v2/pods/{id}/files',
  '/v2/events',
  '/v2/pods/{id}/logs',
  '/v2/serverless/{id}/workers/{workerId}/logs',
  '/v2/{endpointId}/runsync',
  '/v2/{endpointId}/status-sync/{jobId}',
  '/v2/{endpointId}/stream/{jobId}',
];
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];

describe('whatever is asked, nothing answers 500 and every answer is as its document says', {
  concurrency: true,
}, () => {
  const fixture = clearedServerFixture();

  for (const version of ['v1', 'v2']) {
    test(version, { timeout: SECONDS * 1000 + 120_000 }, async () => {
      const place = mkdtempSync(join(tmpdir(), 'berth-fuzz-'));
      const args = [
        'run',
        `${fixture.server.url}/${version}/openapi.json`,
        '--header',
        `Authorization: Bearer ${fixture.server.key}`,
        '--checks',
        CHECKS.join(','),
        '--phases',
        'coverage,fuzzing',
        '--max-examples',
        '20',
        '--max-time',
        String(SECONDS),
        ...LEFT_OUT.flatMap((path) => ['--exclude-path', path]),
        '--seed',
        String(seed),
        '--continue-on-failure',
        '--request-timeout',
        '30',
        '--suppress-health-check',
        'all',
        '--warnings',
        'off',
        '--no-color',
      ];
      const fuzzer = spawn(join(installedPython('fuzz').path, '../schemathesis'), args, {
        cwd: place,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { PATH: process.env['PATH'], HOME: place },
      });
      let said = '';
      for (const stream of [fuzzer.stdout, fuzzer.stderr])
        stream.setEncoding('utf8').on('data', (text: string) => (said += text));
      const [code] = await once(fuzzer, 'exit');
      rmSync(place, { recursive: true });
      assert.equal(code, 0, said);
      assert.match(said, /[1-9]\d* generated, [1-9]\d* passed/);
    });
  }
});
