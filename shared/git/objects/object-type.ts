/** The four kinds of object, by the number a pack gives them. 6 and 7 are deltas of any of the four. */
export const objectTypes = { commit: 1, tree: 2, blob: 3, tag: 4 } as const;

export type ObjectType = keyof typeof objectTypes;

export const offsetDelta = 6;
export const referenceDelta = 7;

const names: readonly (ObjectType | undefined)[] = [undefined, 'commit', 'tree', 'blob', 'tag'];

/** @throws RangeError for a delta or a code that does not exist */
export function typeName(code: number): ObjectType {
  const name = names[code];
  if (name === undefined) throw new RangeError(`${code} is not a type of object`);
  return name;
}

export function isObjectType(name: string): name is ObjectType {
  return Object.hasOwn(objectTypes, name);
}
