import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';
import { logFloodSuite } from './log-flood.suite.ts';

logFloodSuite('process', async () => processEngineFixture());
