import java.io.File;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.PublicKey;
import java.util.ArrayList;
import java.util.List;
import org.eclipse.jgit.api.Git;
import org.eclipse.jgit.api.TransportCommand;
import org.eclipse.jgit.transport.CredentialsProvider;
import org.eclipse.jgit.transport.PushResult;
import org.eclipse.jgit.transport.RefSpec;
import org.eclipse.jgit.transport.RemoteRefUpdate;
import org.eclipse.jgit.transport.SshTransport;
import org.eclipse.jgit.transport.UsernamePasswordCredentialsProvider;
import org.eclipse.jgit.transport.sshd.ServerKeyDatabase;
import org.eclipse.jgit.transport.sshd.SshdSessionFactory;
import org.eclipse.jgit.transport.sshd.SshdSessionFactoryBuilder;

/** jgit (clone|fetch|push) url directory key-file refspec...; the token is in CLIENT_TOKEN. */
public class Client {
  public static void main(String[] args) throws Exception {
    String verb = args[1];
    String url = args[2];
    File directory = new File(args[3]);
    Path keyFile = Path.of(args[4]);
    List<RefSpec> specs = new ArrayList<>();
    for (int i = 5; i < args.length; i++) specs.add(new RefSpec(args[i]));
    File home = Files.createTempDirectory("jgit").toFile();
    SshdSessionFactory ssh = new SshdSessionFactoryBuilder()
        .setPreferredAuthentications("publickey")
        .setHomeDirectory(home)
        .setSshDirectory(home)
        .setDefaultIdentities(file -> List.of(keyFile))
        .setServerKeyDatabase((file, other) -> new AnyServer())
        .build(null);
    try {
      if (verb.equals("clone")) {
        with(Git.cloneRepository().setURI(url).setDirectory(directory), ssh).call().close();
        return;
      }
      try (Git git = Git.open(directory)) {
        if (verb.equals("fetch")) {
          with(git.fetch().setRemote(url).setRefSpecs(specs), ssh).call();
          return;
        }
        for (PushResult result : with(git.push().setRemote(url).setRefSpecs(specs), ssh).call()) {
          for (RemoteRefUpdate update : result.getRemoteUpdates()) {
            if (update.getStatus() != RemoteRefUpdate.Status.OK && update.getStatus() != RemoteRefUpdate.Status.UP_TO_DATE)
              throw new IllegalStateException(update + " " + result.getMessages());
          }
        }
      }
    } finally {
      ssh.close();
    }
  }

  private static <C extends TransportCommand<C, ?>> C with(C command, SshdSessionFactory ssh) {
    CredentialsProvider password = new UsernamePasswordCredentialsProvider("git", System.getenv("CLIENT_TOKEN"));
    return command.setCredentialsProvider(password).setTransportConfigCallback(transport -> {
      if (transport instanceof SshTransport) ((SshTransport) transport).setSshSessionFactory(ssh);
    });
  }

  private static class AnyServer implements ServerKeyDatabase {
    @Override
    public List<PublicKey> lookup(String address, InetSocketAddress remote, Configuration configuration) {
      return List.of();
    }

    @Override
    public boolean accept(String address, InetSocketAddress remote, PublicKey key, Configuration configuration, CredentialsProvider provider) {
      return true;
    }
  }
}
