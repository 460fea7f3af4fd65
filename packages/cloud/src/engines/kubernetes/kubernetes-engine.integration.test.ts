import { withKubernetes } from '../../../../testing/src/kubernetes/with-kubernetes.ts';
import { KUBERNETES_TEST_IMAGE } from '../../../../testing/src/kubernetes/kubernetes-cluster.ts';
import { engineSuite } from '../suite/engine.suite.ts';

/** A port probe disconnects without reading, so socket errors are ignored. */
const SERVER =
  "require('node:net').createServer((socket) => socket.on('error', () => " +
  "undefined).end('hello')).listen(Number(process.env.PORT), '0.0.0.0')";

await withKubernetes(() => {
  engineSuite('the Kubernetes engine', {
    module: new URL('kubernetes-engine.fixture.ts', import.meta.url),
    shellImage: KUBERNETES_TEST_IMAGE,
    unsupportedImage: 'local/shell',
    listenCommand: ['node', '-e', SERVER],
  });
});
