import { idleTimeoutRaceSuite } from './idle-timeout-race.suite.ts';
import { serverKillUnderLoadSuite } from './server-kill-under-load.suite.ts';
import { withDocker } from '../../packages/testing/src/with-docker.ts';
import { dockerEngineFixture } from '../../packages/testing/src/engine-fixture.ts';

await withDocker((host) => {
  const open = () => dockerEngineFixture(host);
  idleTimeoutRaceSuite('Docker', open);
  serverKillUnderLoadSuite('Docker', open);
});
