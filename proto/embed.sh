#!/bin/sh
# embed.sh NAME FILE SOURCE HEADER: the bytes of FILE as a C array NAME (external, const) in SOURCE;
# HEADER declares it with its size.
set -eu
name=$1 file=$2 source=$3 header=$4
size=$(wc -c <"$file")
cat >"$header" <<END
#ifndef EMBEDDED_${name}
#define EMBEDDED_${name}
extern const unsigned char ${name}[${size}];
#endif
END
{
    echo "#include \"$(basename "$header")\""
    echo "const unsigned char ${name}[${size}] = {"
    od -An -v -tu1 "$file" | sed 's/  */,/g; s/^,//; s/$/,/'
    echo "};"
} >"$source"
