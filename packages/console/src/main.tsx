import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { firstReads } from './api/first-reads.ts';
import { queryClient } from './api/queries.ts';
import { ToastProvider } from './components/toast.tsx';
import { router } from './router.tsx';
import { applyTheme } from './shell/theme.ts';
import './styles/tokens.css';
import './styles/base.css';
import './styles/components.css';
import './styles/shell.css';

applyTheme();
const root = document.getElementById('root');
// The router knows its page before the first drawing, so that there is only one.
if (root !== null)
  void Promise.all([firstReads(queryClient, location.pathname), router.load()]).then(() =>
    createRoot(root).render(
      <StrictMode>
        <QueryClientProvider client={queryClient}>
          <ToastProvider>
            <RouterProvider router={router} />
          </ToastProvider>
        </QueryClientProvider>
      </StrictMode>,
    ),
  );
