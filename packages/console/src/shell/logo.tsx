import logo from './logo.svg?raw';

/**
 * Part of the page, not an image of its own: the browser makes a document for each SVG image, and that is time
 * in which the first page is not ready.
 */
export function Logo({ size }: { size: number }) {
  return (
    <span
      className="logo"
      style={{ width: size, height: size }}
      aria-hidden="true"
      dangerouslySetInnerHTML={{ __html: logo }}
    />
  );
}
