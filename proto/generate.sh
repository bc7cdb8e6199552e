#!/bin/sh
# generate.sh PROTOC_C OUTPUT_ROOT FILE OPTION...   (FILE relative to the import path, a/b.proto)
#
# Runs protoc-c. The name of an RPC becomes the name of a member in the generated header, and
# protoc-c does not escape it when it is a C keyword, as it does for fields: `Register` becomes
# `register`. The member is renamed here; nothing of this project uses it.
set -eu
protoc_c=$1 output=$2 file=$3
shift 3
"$protoc_c" "$@" "--c_out=$output" "$file"
sed -i 's/(\*register)(/(*register_)(/' "$output/${file%.proto}.pb-c.h"
