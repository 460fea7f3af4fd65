import { describe } from 'node:test';
import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { volumeSharingSuite } from './volume-sharing.suite.ts';

describe('sharing and copying files, on processes', () =>
  volumeSharingSuite(async () => processEngineFixture()));
