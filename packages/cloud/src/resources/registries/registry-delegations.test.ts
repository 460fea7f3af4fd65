import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import { BerthError } from '../../support/errors.ts';
import { dockerRegistryUri, parseEcrArn } from './registry-delegations.ts';

const part = fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,15}$/);
const delegated = fc.record({
  awsUser: fc.stringMatching(/^\d{12}$/),
  awsRegion: fc.stringMatching(/^[a-z]{2}-[a-z]{4,9}-\d$/),
  repository: fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/')),
  tag: fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,15}$/),
});

describe('the ARN of a delegated repository', () => {
  test('is parsed into account, region, repository and tag', async () => {
    await checkProperty(
      fc.property(delegated, ({ awsUser, awsRegion, repository, tag }) => {
        assert.deepEqual(parseEcrArn(`arn:aws:ecr:${awsRegion}:${awsUser}:repository/${repository}:${tag}`), {
          awsUser,
          awsRegion,
          repository,
          tag,
        });
        assert.deepEqual(parseEcrArn(`arn:aws:ecr:${awsRegion}:${awsUser}:repository/${repository}`), {
          awsUser,
          awsRegion,
          repository,
          tag: 'latest',
        });
      }),
    );
  });

  test('that is invalid is refused with an example', async () => {
    const refused = (resource: string) => () =>
      assert.throws(
        () => parseEcrArn(resource),
        (error) =>
          error instanceof BerthError && error.code === 'rule' && error.message.includes('arn:aws:ecr:'),
      );
    for (const resource of [
      '',
      'x',
      'arn:aws:s3:us-east-1:123456789012:repository/a',
      'arn:aws:ecr:us-east-1:123456789012:repository/',
      'arn:aws:ecr:us-east-1:12ab:repository/a',
      'arn:aws:ecr:us-east-1:123456789012:repository/A\n',
    ])
      refused(resource)();
    await checkProperty(fc.property(fc.string(), (resource) => refused(resource)()));
  });

  test('gives the registry host', () => {
    assert.equal(
      dockerRegistryUri({ awsUser: '123456789012', awsRegion: 'us-east-2' }),
      '123456789012.dkr.ecr.us-east-2.amazonaws.com',
    );
    assert.equal(
      dockerRegistryUri({ awsUser: '123456789012', awsRegion: 'cn-north-1' }),
      '123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn',
    );
  });
});
