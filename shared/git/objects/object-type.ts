/** The four types of object, by their number in a pack. 6 and 7 are deltas of any type. */
export const objectTypes = { commit: 1, tree: 2, blob: 3, tag: 4 } as const;

/** The name of a type: 'commit', 'tree', 'blob' or 'tag'. */
export type ObjectType = keyof typeof objectTypes;

/** Type number of a delta that names its base by its distance in the pack. */
export const offsetDelta = 6;
/** Type number of a delta that names its base by its id. */
export const referenceDelta = 7;

const names: readonly (ObjectType | undefined)[] = [undefined, 'commit', 'tree', 'blob', 'tag'];

/** The name of a type number. @throws RangeError for a delta, or an unknown number */
export function typeName(code: number): ObjectType {
  const name = names[code];
  if (name === undefined) throw new RangeError(`${code} is not a type of object`);
  return name;
}

/** Whether this is the name of a type. */
export function isObjectType(name: string): name is ObjectType {
  return Object.hasOwn(objectTypes, name);
}
