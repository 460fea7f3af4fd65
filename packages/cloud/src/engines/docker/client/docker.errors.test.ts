import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  DockerApiError,
  daemonMessage,
  isNotFound,
  isWrongState,
  toDockerError,
  toStartError,
} from './docker.errors.ts';
import { toPullError } from '../image-pull.ts';

function daemonError(status: number, message: string): Error {
  return new DockerApiError(status, message);
}

describe('Docker errors', () => {
  test('carry the message of the daemon', () => {
    assert.equal(daemonMessage(daemonError(404, 'No such container: x')), 'No such container: x');
    assert.equal(daemonMessage(Object.assign(new Error(''), { code: 'ECONNREFUSED' })), 'ECONNREFUSED');
    assert.match(
      toDockerError(new Error('connect ECONNREFUSED')).message,
      /does not answer: connect ECONNREFUSED/,
    );
  });

  test('are permanent or temporary', () => {
    assert.deepEqual(
      [400, 404, 409, 429, 500].map((status) => toDockerError(daemonError(status, 'no')).code),
      ['rule', 'rule', 'unavailable', 'unavailable', 'unavailable'],
    );
    assert.equal(toDockerError(new Error('connect ENOENT')).code, 'unavailable');
    assert.equal(
      toStartError(daemonError(500, 'runc: exec: "x": executable file not found in $PATH')).code,
      'rule',
    );
    assert.equal(
      toStartError(daemonError(500, 'driver failed programming external connectivity')).code,
      'unavailable',
    );
    assert.equal(toStartError(new Error('connect ENOENT: no such file or directory')).code, 'unavailable');
  });

  test('are recognised after they are wrapped', () => {
    assert.equal(isNotFound(toDockerError(daemonError(404, 'no such container'))), true);
    assert.equal(isWrongState(toDockerError(daemonError(409, 'is not running'))), true);
    assert.equal(
      isWrongState(
        toDockerError(daemonError(500, 'can only kill running containers: container state improper')),
      ),
      true,
    );
    assert.equal(isWrongState(new Error('away')), false);
  });

  test('a missing image is permanent, an unreachable registry is temporary', () => {
    const codeOf = (error: Error): string => toPullError('image', error).code;
    assert.equal(codeOf(daemonError(404, 'manifest for image not found')), 'rule');
    assert.equal(codeOf(daemonError(500, 'unauthorized: authentication required')), 'rule');
    assert.equal(codeOf(new Error('pull access denied for image, repository does not exist')), 'rule');
    assert.equal(codeOf(daemonError(500, 'dial tcp: lookup registry: no such host')), 'unavailable');
    assert.equal(codeOf(new Error('toomanyrequests: rate limit')), 'unavailable');
  });
});
