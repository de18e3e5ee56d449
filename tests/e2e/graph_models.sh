#!/bin/sh
# The graphs in share/models are what the builders of share/lua/graphs make. GENERATE=1 writes them.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# made NAME LIBRARY FUNCTION ARGUMENTS SOURCE
made() {
    file=$root/share/models/$1.json
    echo "print(require('graphs.builder').text(require('graphs.$2').$3{$4}, '$5'))" |
        timeout "$HANG" "$HETVIZ" lua >made.json 2>err
    [ -z "${GENERATE:-}" ] || cp made.json "$file"
    same "$1: the file is what $2.$3 makes" made.json "$file"
    expect "$1: is read" 0 check "$file"
}

made resnet-50 convolutional resnet 'depth = 50, batch = 32' 'He et al. 2015 (arXiv 1512.03385), table 1; strides as torchvision resnet50'
made wide-resnet-50-2 convolutional resnet 'depth = 50, width = 2, batch = 32, name = "wide-resnet-50-2"' 'Zagoruyko and Komodakis 2016 (arXiv 1605.07146); torchvision wide_resnet50_2'
made inception-v3 convolutional inception_v3 'batch = 32' 'Szegedy et al. 2015 (arXiv 1512.00567); torchvision inception_v3'
made vgg-19 convolutional vgg19 'batch = 32' 'Simonyan and Zisserman 2014 (arXiv 1409.1556), configuration E'
made u-net convolutional unet 'batch = 8' 'Ronneberger, Fischer and Brox 2015 (arXiv 1505.04597), figure 1'
made gnmt recurrent gnmt 'batch = 32, tokens = 8' 'Wu et al. 2016 (arXiv 1609.08144) as NVIDIA DeepLearningExamples GNMT v2 has it; 8 of its tokens'
made dlrm recommendation dlrm 'batch = 2048' 'Naumov et al. 2019 (arXiv 1906.00091), tables of Criteo terabyte as in MLPerf Training'
finish
