/** As much of an ESTree node, and of what oxlint hands a rule, as this rule reads. */
interface Node {
  type: string;
  parent: Node;
  key: { type: string; name?: string; value?: unknown };
  value: { type: string; value?: unknown };
  source: { value: string };
}
interface RuleContext {
  report(problem: { node: Node; message: string }): void;
}

const message = 'A shell would read the arguments as code: spawn without one.';

/** In a file that can start processes, no object sets `shell` to anything but false. */
const noShell = {
  meta: { type: 'problem', docs: { description: message } },
  create(context: RuleContext): Record<string, (node: Node) => void> {
    let startsProcesses = false;
    return {
      ImportDeclaration({ source }) {
        if (/^(node:)?child_process$/.test(source.value)) startsProcesses = true;
      },
      Property(node) {
        if (!startsProcesses || node.parent.type !== 'ObjectExpression') return;
        const named = (node.key.type === 'Identifier' ? node.key.name : node.key.value) === 'shell';
        const off = node.value.type === 'Literal' && node.value.value === false;
        if (named && !off) context.report({ node, message });
      },
    };
  },
};

export default { meta: { name: 'paas' }, rules: { 'no-shell': noShell } };
