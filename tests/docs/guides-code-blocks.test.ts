import { describePages } from './pages.suite.ts';
import { pagesFor } from './pages.ts';

describePages('the code blocks of the README and the guides', pagesFor('guides'));
