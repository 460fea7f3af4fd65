import { idleTimeoutRaceSuite } from './idle-timeout-race.suite.ts';
import { serverKillUnderLoadSuite } from './server-kill-under-load.suite.ts';
import { processEngineFixture } from '../../packages/testing/src/engine-fixture.ts';

const open = async () => processEngineFixture();
idleTimeoutRaceSuite('process', open);
serverKillUnderLoadSuite('process', open);
