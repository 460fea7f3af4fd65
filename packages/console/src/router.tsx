import { lazy, Suspense } from 'react';
import type { ComponentType } from 'react';
import { createRootRoute, createRoute, createRouter, Outlet } from '@tanstack/react-router';
import { Page } from './components/page.tsx';
import { EmptyState, ErrorNote, Skeleton } from './components/states.tsx';
import { LinkButton } from './components/button.tsx';
import { LoginPage } from './pages/login.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { Shell } from './shell/shell.tsx';

const root = createRootRoute({ component: Outlet });

const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  errorComponent: ({ error }) => <ErrorNote error={error as Error} />,
});

/** A page that is loaded when it is first opened. The module exports the component as `default`. */
function page(path: string, load: () => Promise<{ default: ComponentType }>) {
  const Loaded = lazy(load);
  return createRoute({
    getParentRoute: () => shell,
    path,
    component: () => (
      <Suspense fallback={<Skeleton />}>
        <Loaded />
      </Suspense>
    ),
    errorComponent: ({ error, reset }) => <ErrorNote error={error as Error} retry={reset} />,
  });
}

const routes = root.addChildren([
  createRoute({ getParentRoute: () => root, path: '/login', component: LoginPage }),
  shell.addChildren([
    createRoute({ getParentRoute: () => shell, path: '/', component: OverviewPage }),
    page('/serverless', () => import('./pages/serverless/list.tsx')),
    page('/serverless/new', () => import('./pages/serverless/new.tsx')),
    page('/serverless/$id', () => import('./pages/serverless/endpoint.tsx')),
    page('/serverless/$id/$tab', () => import('./pages/serverless/endpoint.tsx')),
    page('/pods', () => import('./pages/pods.tsx')),
    page('/pods/new', () => import('./pages/pod-new.tsx')),
    page('/pods/$id', () => import('./pages/pod.tsx')),
    page('/pods/$id/$tab', () => import('./pages/pod.tsx')),
    page('/clusters', () => import('./pages/clusters.tsx')),
    page('/clusters/$id', () => import('./pages/cluster.tsx')),
    page('/storage', () => import('./pages/storage.tsx')),
    page('/storage/$id', () => import('./pages/volume.tsx')),
    page('/templates', () => import('./pages/templates.tsx')),
    page('/registries', () => import('./pages/registries.tsx')),
    page('/secrets', () => import('./pages/secrets.tsx')),
    page('/ssh-keys', () => import('./pages/ssh-keys.tsx')),
    page('/billing', () => import('./pages/billing.tsx')),
    page('/keys', () => import('./pages/keys.tsx')),
    page('/audit', () => import('./pages/audit.tsx')),
    page('/system', () => import('./pages/system.tsx')),
    // Any other address: with the navigation around it.
    createRoute({ getParentRoute: () => shell, path: '$', component: NotFound }),
  ]),
]);

function NotFound() {
  return (
    <Page title="No such page">
      <EmptyState
        title="There is nothing at this address"
        action={<LinkButton to="/">Overview</LinkButton>}
      />
    </Page>
  );
}

export const router = createRouter({
  routeTree: routes,
  defaultPreload: 'intent',
  scrollRestoration: true,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
