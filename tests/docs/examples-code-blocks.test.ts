import { describePages } from './pages.suite.ts';

describePages('the code blocks of the examples', [
  'examples/text-model/README.md',
  'examples/batch-map/README.md',
  'examples/fastapi-server/README.md',
  'examples/training-pod/README.md',
]);
