import type { ObjectType } from '#shared/git/objects/object-type.ts';
import { commitOf, objectId, type PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';

/** Returns the type and content of the object to push. Adds the objects that it refers to to the pack. */
export type MakeObject = (pack: PackBuilder) => [type: ObjectType, content: string | Buffer];

const blob = (content = 'x'): string => objectId('blob', content);
const file = (name: string | Buffer, content = 'x', mode = '100644'): Buffer => treeEntry(mode, name, blob(content));
const tree = objectId('tree', file('a'));
const id = 'A <a@example.com> 1700000000 +0000';

/** A valid commit with one change. */
function commit(change: (good: string) => string): MakeObject {
  return (pack) => {
    pack.add('blob', 'x');
    pack.add('tree', file('a'));
    return ['commit', change(commitOf(tree))];
  };
}

function author(line: string): MakeObject {
  return commit((good) => good.replace(/^author .*$/m, `author ${line}`));
}

function tag(change: (good: string) => string): MakeObject {
  return (pack) => {
    pack.add('blob', 'x');
    return ['tag', change(`object ${blob()}\ntype blob\ntag v1\ntagger ${id}\n\nmessage\n`)];
  };
}

function entries(...made: readonly Buffer[]): MakeObject {
  return (pack) => {
    pack.add('blob', 'x');
    return ['tree', Buffer.concat(made)];
  };
}

function named(name: string | Buffer): MakeObject {
  return entries(file(name));
}

function directory(name: string): MakeObject {
  return (pack) => {
    pack.add('blob', 'x');
    pack.add('tree', file('a'));
    return ['tree', treeEntry('40000', name, tree)];
  };
}

/** A file with this name and text. Its blob comes before the tree in the pack, or after it. */
function content(name: string, text: string | Buffer, order: 'before' | 'after' = 'before'): MakeObject {
  return (pack) => {
    const folder = treeEntry('100644', name, objectId('blob', text));
    if (order === 'before') pack.add('blob', text);
    else {
      pack.add('tree', folder);
      pack.add('blob', text);
    }
    return order === 'before' ? ['tree', folder] : ['commit', commitOf(objectId('tree', folder))];
  };
}

const submodule = (lines: string, name = 'a'): string => `[submodule "${name}"]\n${lines}\n`;
const url = (address: string): MakeObject => content('.gitmodules', submodule(`\turl = ${address}`));
const large = Buffer.alloc(17 * 1024 * 1024, '# a line\n');

/**
 * Objects that git's fsck complains about, by the id of the message in git-fsck(1). The id is '' for objects that look unusual and
 * are valid.
 */
export const fsckCases: readonly [id: string, what: string, make: MakeObject][] = [
  ['badDate', 'no date', author('A <a@example.com> +0000')],
  ['badDate', 'letters for a date', author('A <a@example.com> now +0000')],
  ['badDateOverflow', 'a date of 20 digits', author('A <a@example.com> 18446744073709551615 +0000')],
  ['badDateOverflow', 'the first date that is too large', author('A <a@example.com> 9223372036854775808 +0000')],
  ['badEmail', 'an email without an end', author('A <a@example.com 1700000000 +0000')],
  ['badEmail', 'an email in an email', author('A <a<b>@example.com> 1700000000 +0000')],
  ['badName', 'a name with a bracket', author('A> <a@example.com> 1700000000 +0000')],
  ['badParentSha1', 'a parent that is not an id', commit((good) => good.replace('\nauthor', '\nparent 123\nauthor'))],
  ['badTimezone', 'a time zone with a colon', author('A <a@example.com> 1700000000 +00:00')],
  ['badTimezone', 'text after the time zone', author('A <a@example.com> 1700000000 +0000 ')],
  ['badTreeSha1', 'a tree that is not an id', commit((good) => good.replace(/^tree .{4}/, 'tree zzzz'))],
  ['missingAuthor', 'no author', commit((good) => good.replace(/^author .*\n/m, ''))],
  ['missingCommitter', 'no committer', commit((good) => good.replace(/^committer .*\n/m, ''))],
  ['missingEmail', 'no email', author('A 1700000000 +0000')],
  ['missingNameBeforeEmail', 'no name', author('<a@example.com> 1700000000 +0000')],
  ['missingSpaceBeforeDate', 'no space before the date', author('A <a@example.com>1700000000 +0000')],
  ['missingSpaceBeforeEmail', 'no space before the email', author('A<a@example.com> 1700000000 +0000')],
  ['missingTree', 'no tree', commit((good) => good.replace(/^tree .*\n/, ''))],
  ['multipleAuthors', 'two authors', commit((good) => good.replace(/^(author .*\n)/m, '$1$1'))],
  ['nulInCommit', 'a NUL byte in the message', commit((good) => good.replace('message', 'mess\0age'))],
  ['nulInHeader', 'a NUL byte in the header', commit((good) => good.replace('A <', 'A\0 <'))],
  ['unterminatedHeader', 'a header without an end', commit((good) => good.split('\n\n')[0] ?? '')],
  ['zeroPaddedDate', 'a zero before the date', author('A <a@example.com> 01700000000 +0000')],
  ['', 'a commit of the year 1970', author('A <a@example.com> 0 +0000')],
  ['', 'two spaces before the date', author('A <a@example.com>  1700000000 +0000')],
  ['', 'an empty name and email', author(' <> 1700000000 +0000')],
  ['', 'a commit without a message', commit((good) => `${good.split('\n\n')[0]}\n`)],
  [
    '',
    'a header of many lines',
    commit((good) => good.replace('\n\n', '\ngpgsig -----BEGIN\n abc\n -----END\nencoding latin1\n\n')),
  ],

  ['badObjectSha1', 'an object that is not an id', tag((good) => good.replace(/^object .{4}/, 'object zzzz'))],
  ['badType', 'an unknown type', tag((good) => good.replace('type blob', 'type bleb'))],
  ['missingObject', 'no object', tag((good) => good.replace(/^object .*\n/, ''))],
  ['missingTypeEntry', 'no type', tag((good) => good.replace(/^type .*\n/m, ''))],
  ['missingTagEntry', 'no name', tag((good) => good.replace(/^tag .*\n/m, ''))],
  ['badTagName', 'an invalid ref name', tag((good) => good.replace('tag v1', 'tag a..b'))],
  ['missingTaggerEntry', 'no tagger', tag((good) => good.replace(/^tagger .*\n/m, ''))],
  ['extraHeaderEntry', 'an additional header', tag((good) => good.replace('\n\n', '\nmore headers\n\n'))],

  ['badTree', 'a missing end', entries(file('a').subarray(0, 20))],
  ['badTree', 'a mode that is not a number', entries(file('a', 'x', '1006x4'))],
  ['badTree', 'an entry without a name', named('')],
  ['badFilemode', 'a group-writable file', entries(file('a', 'x', '100664'))],
  ['badFilemode', 'a file for its owner only', entries(file('a', 'x', '100600'))],
  ['badFilemode', 'a program with every bit set', entries(file('a', 'x', '104777'))],
  ['badFilemode', 'a link with permissions', entries(file('a', 'x', '120777'))],
  ['duplicateEntries', 'two files of one name', entries(file('a'), file('a'))],
  ['duplicateEntries', 'a file and a directory of one name', entries(file('a'), file('a.b'), treeEntry('40000', 'a', tree))],
  ['fullPathname', 'a slash', named('a/b')],
  ['hasDot', 'a dot', named('.')],
  ['hasDotdot', 'two dots', named('..')],
  ...[
    '.git',
    '.GIT',
    'git~1',
    '.git ',
    '.git...',
    '.git::$INDEX_ALLOCATION',
    '.g\u200cit',
    '\ufeff.git',
    'x\\.git',
    'x\\git~1\\y',
  ].map((name): [string, string, MakeObject] => ['hasDotgit', `the name ${JSON.stringify(name)}`, named(name)]),
  ['hasDotgit', '.git before a byte that is not text', named(Buffer.from('.git\xff', 'latin1'))],
  ['nullSha1', 'the null id', entries(treeEntry('160000', 'a', '0'.repeat(40)))],
  ['treeNotSorted', 'the wrong order', entries(file('b'), file('a'))],
  ['zeroPaddedFilemode', 'a zero before the mode', entries(file('a', 'x', '0100644'))],
  ['', 'names that only look like .git', entries(...['.gi', '.gitx', 'git~2', 'x.git'].map((name) => file(name)))],

  ...[
    '.gitmodules',
    '.GITMODULES',
    'gitmod~1',
    'GI7EBA~1',
    '~1000000',
    '.gitmod\u200dules',
    '.gitmodules::$DATA',
    'x\\.gitmodules',
  ].map((name): [string, string, MakeObject] => [
    'gitmodulesSymlink',
    `${JSON.stringify(name)} as a link`,
    entries(file(name, 'x', '120000')),
  ]),
  ['gitattributesSymlink', '.gitattributes as a link', entries(file('.gitattributes', 'x', '120000'))],
  ['gitignoreSymlink', '.gitignore as a link', entries(file('.gitignore', 'x', '120000'))],
  ['mailmapSymlink', '.mailmap as a link', entries(file('.mailmap', 'x', '120000'))],
  ['gitmodulesBlob', 'a directory', directory('.gitmodules')],
  ['gitattributesBlob', 'a directory', directory('.gitattributes')],
  ['gitmodulesMissing', 'not sent', entries(treeEntry('100644', '.gitmodules', '1'.repeat(40)))],
  ['gitmodulesLarge', '17 MiB', content('.gitmodules', large)],
  ['gitmodulesName', 'a name with ".."', content('.gitmodules', submodule('url = https://a/b', '../../x'))],
  ['gitmodulesName', 'a name with ".." and backslashes', content('.gitmodules', submodule('url = https://a/b', 'x\\\\..\\\\y'))],
  ['gitmodulesName', 'an empty name', content('.gitmodules', submodule('url = https://a/b', ''))],
  ['gitmodulesName', 'blob after its tree', content('.gitmodules', submodule('path = after', '..'), 'after')],
  ['gitmodulesName', 'another spelling of the file', content('GITMOD~1', submodule('path = short', '..'))],
  ['gitmodulesName', 'a fault before a syntax error', content('.gitmodules', `${submodule('path = b', '..')}[oh no`)],
  ['gitmodulesPath', 'a path like an option', content('.gitmodules', submodule('path = -u./x'))],
  ['gitmodulesUpdate', 'a command', content('.gitmodules', submodule('update = !touch x'))],
  ['gitmodulesUrl', 'an option', url('-u./x')],
  ['gitmodulesUrl', 'an option in quotes', url('"--upload-pack=x"')],
  ['gitmodulesUrl', 'an encoded line break', url('../x%0ahost=evil')],
  ['gitmodulesUrl', 'an escaped line break', url('"git://host\\n/x"')],
  ['gitmodulesUrl', 'a line break in a host', url('https://ex%0aample.com/x')],
  ['gitmodulesUrl', 'a line break in a password', url('https://me:%0a@example.com/x')],
  ['gitmodulesUrl', 'no host', url('https:///x')],
  ['gitmodulesUrl', 'a protocol without a name', url('ftp::://https://example.com/x')],
  ['gitmodulesUrl', 'a protocol alone', url('http::example.com/x')],
  ['gitmodulesUrl', 'a relative URL with ".." that ends in a host', url('../../../:example.com/x')],
  ['gitmodulesParse', 'a syntax error', content('.gitmodules', '[submodule "a"\nurl = -u\n')],
  ['', 'a valid .gitmodules', content('.gitmodules', submodule('path = lib\n\turl = ../lib.git\n\tupdate = rebase ; a comment'))],
  [
    '',
    'every kind of URL',
    content(
      '.gitmodules',
      ['git@host:x', 'ssh://-x/y', 'https://u:p@h:1/x', './x', 'git://h/%41', 'file:///x', 'x%0a']
        .map((each, i) => submodule(`url = ${each}`, `${i}`))
        .join(''),
    ),
  ],
  ['gitattributesLarge', '17 MiB', content('.gitattributes', large)],
  ['gitattributesLineLength', 'a line of 2,048 bytes', content('.gitattributes', `# fine\n${'x'.repeat(2048)}`)],
  ['gitattributesLineLength', 'blob after its tree', content('.gitattributes', `${'y'.repeat(2048)}\n`, 'after')],
  ['gitattributesMissing', 'not sent', entries(treeEntry('100644', '.gitattributes', '2'.repeat(40)))],
  [
    '',
    'a line of 2,047 bytes, and what follows a NUL byte',
    content('.gitattributes', `${'x'.repeat(2047)}\n\0${'x'.repeat(5000)}`),
  ],
];
