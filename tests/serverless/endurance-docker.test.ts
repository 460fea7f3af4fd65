import { idleEdge } from './idle-edge.suite.ts';
import { killUnderLoad } from './kill-under-load.suite.ts';
import { withDocker } from '../support/docker.ts';
import { dockerEngine } from '../support/engine-under-test.ts';

await withDocker((host) => {
  const open = () => dockerEngine(host);
  idleEdge('Docker', open);
  killUnderLoad('Docker', open);
});
