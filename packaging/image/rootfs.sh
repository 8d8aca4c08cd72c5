#!/bin/sh
# Makes the contents of the image: rootfs.sh BUNDLE FOLDER
#
# Debian's libc and Python without their documentation, and the packages of gpucheck.pyz. Runs in
# Debian 12 as root; nothing is installed outside of FOLDER.
set -eu
bundle=$(realpath "$1") root=$2
packages="busybox-static libbz2-1.0 libc6 libexpat1 libffi8 libgcc-s1 liblzma5 libpython3.11-minimal
  libpython3.11-stdlib python3.11-minimal zlib1g"

mkdir -p "$root/usr/bin" "$root/usr/lib" "$root/usr/lib64" "$root/usr/sbin" "$root/host" "$root/tmp"
root=$(realpath "$root")
for folder in bin lib lib64 sbin; do
  ln -sfn "usr/$folder" "$root/$folder" # as in Debian
done
chmod 1777 "$root/tmp"

downloads=$(mktemp -d)
trap 'rm -rf "$downloads"' EXIT
chmod 755 "$downloads"
chown _apt "$downloads" 2>/dev/null || true # apt downloads as this user, if there are other users here
# shellcheck disable=SC2086  # one word for each package
(cd "$downloads" && apt-get download -qq $packages)
for package in "$downloads"/*.deb; do
  dpkg --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink \
    --exclude='./usr/share/*' --exclude='*/gconv/*' --exclude='*/ensurepip/*' --exclude='*/pydoc_data/*'
  name=$(dpkg-deb -f "$package" Package)
  dpkg --fsys-tarfile "$package" | tar -x -C "$root" "./usr/share/doc/$name/copyright" 2>/dev/null || true
done
ln -sf python3.11 "$root/usr/bin/python3"
ln -sf busybox "$root/usr/bin/sh"
ln -sf busybox "$root/usr/bin/sleep" # for a loop in a pod
ln -sf busybox "$root/usr/bin/dmesg" # the kernel log, where /dev/kmsg cannot be opened

cp "$bundle" "$root/tmp/gpucheck.pyz"
chroot "$root" /usr/bin/python3 -c '
import compileall, importlib.machinery, os, shutil, zipfile
suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
with zipfile.ZipFile("/tmp/gpucheck.pyz") as opened:
    for name in opened.namelist():
        if name.startswith("packages/") and (not name.endswith(".so") or name.endswith(suffix)):
            opened.extract(name, "/opt")
os.rename("/opt/packages", "/opt/gpucheck")
with open("/opt/gpucheck/__main__.py", "w") as start:
    start.write("from gpucheck.__main__ import main\n\nmain()\n")
compileall.compile_dir("/opt/gpucheck", quiet=2)
'
rm "$root/tmp/gpucheck.pyz"
cat >"$root/usr/bin/gpucheck" <<'END'
#!/bin/sh
exec /usr/bin/python3 -I /opt/gpucheck "$@"
END
chmod 755 "$root/usr/bin/gpucheck"
echo "gpucheck:x:65532:65532::/tmp:/bin/sh" >"$root/etc/passwd"
echo "gpucheck:x:65532:" >"$root/etc/group"
