import { engineSuite } from '../engine.suite.ts';
import { VIRTUAL_GPU } from './test-engine.ts';
import { supervisionProblem } from './supervise.ts';

const SERVER = "require('node:net').createServer((socket) => socket.end('hello')).listen(Number(process.env.PORT), '127.0.0.1')";

if (supervisionProblem() === undefined) {
  engineSuite('the process engine', {
    module: new URL('test-engine.ts', import.meta.url),
    shell: 'local/shell',
    impossible: 'docker.io/library/alpine:3',
    gpuTypeId: VIRTUAL_GPU.gpuTypeId,
    listen: ['node', '-e', SERVER],
  });
}
