import assert from 'node:assert/strict';
import { test } from 'node:test';
import { diskErrorToS3Error } from './s3.errors.ts';

const systemError = (code: string): Error => Object.assign(new Error(code), { code });

test('errors of the disk have S3 error codes', () => {
  for (const code of ['ENOSPC', 'EDQUOT'])
    assert.equal(diskErrorToS3Error(systemError(code))?.code, 'QuotaExceeded');
  for (const code of ['EACCES', 'EPERM'])
    assert.deepEqual(
      [diskErrorToS3Error(systemError(code))?.code, diskErrorToS3Error(systemError(code))?.status],
      ['AccessDenied', 403],
    );
  for (const code of ['EIO', 'ENOENT']) assert.equal(diskErrorToS3Error(systemError(code)), undefined);
});
