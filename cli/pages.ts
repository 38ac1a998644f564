interface AnsweredPage<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** Items of a list, page after page, read as they are asked for. */
export async function* eachItem<Item>(
  readPage: (query: { limit: number; cursor?: string }) => Promise<AnsweredPage<Item>>,
): AsyncGenerator<Item> {
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page: AnsweredPage<Item> = await readPage({ limit: 200, ...(cursor === undefined ? {} : { cursor }) });
    yield* page.data;
    cursor = page.next_cursor;
  }
}

/** The first `count` items of a list, or all of them. */
export async function firstItems<Item>(items: AsyncIterable<Item>, count = Number.POSITIVE_INFINITY): Promise<Item[]> {
  const found: Item[] = [];
  if (count <= 0) return found;
  for await (const item of items) {
    found.push(item);
    if (found.length >= count) break;
  }
  return found;
}
