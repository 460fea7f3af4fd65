import { faultyWorkersSuite } from './faulty-workers.suite.ts';
import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';

faultyWorkersSuite('process', async () => processEngineFixture());
