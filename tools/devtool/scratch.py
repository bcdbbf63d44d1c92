"""A file system for what tests write: theirs alone, and gone when they end.

Ext4 without a journal gives no inode away again that was deleted within the last minutes, and looks at each
of those whenever it makes a file (recently_deleted() in the kernel's fs/ext4/ialloc.c). Tests delete tens of
thousands of files; after them every new file takes milliseconds, instead of some 30 us, until a bound on
time that has nothing to do with it is missed. So the run gets an ext4 with a journal, on /tmp, /var/tmp and
/var/lib/palmshed, where root's sandboxes are.
"""

from pathlib import Path

Command = list[str]

# What `within` ends with when there is none. No command of ours does.
UNAVAILABLE = 125

# In a mount namespace of its own: the last process that is in it takes the mounts and the loop device
# along, however it ends. A checkout that lies below one of the places stays where it is.
_SCRIPT = """
set -e
image=$1.$$ top=$2 checkout=$3
shift 3
trap 'rm --force "$image"; exit 125' EXIT
truncate --size 16G "$image"
mkfs.ext4 -q "$image"
mount -o loop "$image" "$top"
for place in /tmp /var/tmp; do
  mkdir --parents "$top$place"
  chmod 1777 "$top$place"
  case "$checkout/" in
    "$place"/*)
      mkdir --parents "$top$checkout"
      mount --rbind "$checkout" "$top$checkout"
      ;;
  esac
done
for private in "$top/sandboxes" /var/lib/palmshed; do
  mkdir --parents --mode 700 "$private"
done
mount --bind "$top/sandboxes" /var/lib/palmshed
mount --rbind "$top/var/tmp" /var/tmp
mount --rbind "$top/tmp" /tmp
trap - EXIT
rm "$image"
exec "$@"
"""


def within(command: Command, checkout: Path, folder: Path) -> Command:
    """What runs `command` with such a file system, or ends with UNAVAILABLE without having run it.

    Needs root and an own folder, which it makes no difference to lose.
    """
    places = [str(folder / "scratch.img"), str(folder / "scratch"), str(checkout)]
    apart = ["unshare", "--mount", "--propagation", "private"]
    return [*apart, "sh", "-c", _SCRIPT, "sh", *places, *command]
