import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WorkerLog } from './worker-log.ts';

function lines(variables: Record<string, string>, use: (log: WorkerLog) => void): string[] {
  const written: string[] = [];
  use(new WorkerLog(variables, (line) => written.push(line)));
  return written;
}

describe('the log', () => {
  test('is JSON with the job id on a platform, text elsewhere', () => {
    const say = (log: WorkerLog): void => {
      log.info('begins');
      log.error('broke\n', 'job-1');
    };
    assert.deepEqual(lines({ RUNPOD_ENDPOINT_ID: 'ep' }, say), [
      '{"requestId":null,"message":"begins","level":"INFO"}\n',
      '{"requestId":"job-1","message":"broke\\n","level":"ERROR"}\n',
    ]);
    assert.deepEqual(lines({}, say), ['INFO  | begins\n', 'ERROR | job-1 | broke\n\n']);
  });

  test('follows the level; an unknown level is INFO', () => {
    const say = (log: WorkerLog): void => {
      log.info('i');
      log.warn('w');
      log.error('e');
    };
    const count = (variables: Record<string, string>): number => lines(variables, say).length;
    assert.deepEqual(
      ['error', 'WARN', 'INFO', 'debug', 'notset', 'WARNING', ''].map((level) =>
        count({ RUNPOD_DEBUG_LEVEL: level }),
      ),
      [1, 2, 3, 3, 3, 3, 3],
    );
    assert.equal(count({ RUNPOD_DEBUG_LEVEL: 'DEBUG', RUNPOD_LOG_LEVEL: 'ERROR' }), 1);
  });

  test('cuts a long message in the middle', () => {
    const [line = ''] = lines({}, (log) => log.info(`${'a'.repeat(9_000)}end`));
    assert.ok(line.length < 4_200);
    assert.match(line, /a\.\.\.a+end\n$/);
  });
});
