/** What several sections of the page are made of. */

/** Names and values, one pair a line. */
export function Facts({ facts }: { facts: readonly [string, string][] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

/** A figure. @param svg drawn by our own plots: it goes into the page as it is */
export function Plot({ caption, svg }: { caption: string; svg: string }) {
  return (
    <figure>
      <figcaption>{caption}</figcaption>
      <div dangerouslySetInnerHTML={{ __html: svg }} />
    </figure>
  );
}
