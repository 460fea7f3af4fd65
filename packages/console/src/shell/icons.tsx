const PATHS = {
  overview: 'M3 10.5 10 4l7 6.5M5 9v7h10V9',
  serverless: 'M11 2 4 11h5l-1 7 8-10h-5l1-6Z',
  pods: 'M3 6h14v8H3zM6 17h8M8 10h4',
  clusters: 'M10 3v4M4 17v-3h12v3M10 7v7M2.5 17h3M8.5 17h3M14.5 17h3',
  storage: 'M4 5c0-1.5 12-1.5 12 0v10c0 1.5-12 1.5-12 0zM4 5c0 1.5 12 1.5 12 0M4 10c0 1.5 12 1.5 12 0',
  templates: 'M4 3h8l4 4v10H4zM12 3v4h4',
  registries: 'M3 6.5 10 3l7 3.5v7L10 17l-7-3.5zM3 6.5 10 10l7-3.5M10 10v7',
  secrets: 'M5 9h10v8H5zM7 9V6a3 3 0 0 1 6 0v3',
  sshkeys: 'M3 4h14v12H3zM6 8l3 2-3 2M11 12h3',
  billing: 'M4 16V9M10 16V4M16 16v-5',
  keys: 'M12 8a4 4 0 1 0-3.5 3.97L11 14h2v2h3v-3l-4.2-4.2A4 4 0 0 0 12 8',
  audit: 'M5 3h10v14H5zM8 7h4M8 10h4M8 13h2',
  system: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      width="18"
      height="18"
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
