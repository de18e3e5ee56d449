module @jit_apply attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<32xf32>, %arg1: tensor<3x3x1x32xf32>, %arg2: tensor<64xf32>, %arg3: tensor<3x3x32x64xf32>, %arg4: tensor<10xf32>, %arg5: tensor<3136x10xf32>, %arg6: tensor<64xf32>, %arg7: tensor<64xf32>, %arg8: tensor<4x28x28x1xf32>) -> (tensor<4x10xf32> {jax.result_info = ""}) {
    %0 = stablehlo.convolution(%arg8, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x28x28x1xf32>, tensor<3x3x1x32xf32>) -> tensor<4x28x28x32xf32>
    %1 = stablehlo.reshape %arg0 : (tensor<32xf32>) -> tensor<1x1x1x32xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2, 3] : (tensor<1x1x1x32xf32>) -> tensor<4x28x28x32xf32>
    %3 = stablehlo.add %0, %2 : tensor<4x28x28x32xf32>
    %4 = call @relu(%3) : (tensor<4x28x28x32xf32>) -> tensor<4x28x28x32xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %6 = "stablehlo.reduce_window"(%4, %5) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg9: tensor<f32>, %arg10: tensor<f32>):
      %55 = stablehlo.maximum %arg9, %arg10 : tensor<f32>
      stablehlo.return %55 : tensor<f32>
    }) : (tensor<4x28x28x32xf32>, tensor<f32>) -> tensor<4x14x14x32xf32>
    %7 = stablehlo.convolution(%6, %arg3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<4x14x14x32xf32>, tensor<3x3x32x64xf32>) -> tensor<4x7x7x64xf32>
    %8 = stablehlo.reshape %arg2 : (tensor<64xf32>) -> tensor<1x1x1x64xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xf32>) -> tensor<4x7x7x64xf32>
    %10 = stablehlo.add %7, %9 : tensor<4x7x7x64xf32>
    %11 = stablehlo.multiply %10, %10 : tensor<4x7x7x64xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%10 init: %cst_0) applies stablehlo.add across dimensions = [3] : (tensor<4x7x7x64xf32>, tensor<f32>) -> tensor<4x7x7xf32>
    %cst_1 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x7x7xf32>
    %14 = stablehlo.divide %12, %13 : tensor<4x7x7xf32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %15 = stablehlo.reduce(%11 init: %cst_2) applies stablehlo.add across dimensions = [3] : (tensor<4x7x7x64xf32>, tensor<f32>) -> tensor<4x7x7xf32>
    %cst_3 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<4x7x7xf32>
    %17 = stablehlo.divide %15, %16 : tensor<4x7x7xf32>
    %18 = stablehlo.multiply %14, %14 : tensor<4x7x7xf32>
    %19 = stablehlo.subtract %17, %18 : tensor<4x7x7xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4x7x7xf32>
    %21 = stablehlo.maximum %20, %19 : tensor<4x7x7xf32>
    %22 = stablehlo.broadcast_in_dim %14, dims = [0, 1, 2] : (tensor<4x7x7xf32>) -> tensor<4x7x7x1xf32>
    %23 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<4x7x7xf32>) -> tensor<4x7x7x1xf32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2, 3] : (tensor<4x7x7x1xf32>) -> tensor<4x7x7x64xf32>
    %25 = stablehlo.subtract %10, %24 : tensor<4x7x7x64xf32>
    %cst_5 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x7x7x1xf32>
    %27 = stablehlo.add %23, %26 : tensor<4x7x7x1xf32>
    %28 = stablehlo.rsqrt %27 : tensor<4x7x7x1xf32>
    %29 = stablehlo.reshape %arg7 : (tensor<64xf32>) -> tensor<1x1x1x64xf32>
    %30 = stablehlo.broadcast_in_dim %28, dims = [0, 1, 2, 3] : (tensor<4x7x7x1xf32>) -> tensor<4x7x7x64xf32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xf32>) -> tensor<4x7x7x64xf32>
    %32 = stablehlo.multiply %30, %31 : tensor<4x7x7x64xf32>
    %33 = stablehlo.multiply %25, %32 : tensor<4x7x7x64xf32>
    %34 = stablehlo.reshape %arg6 : (tensor<64xf32>) -> tensor<1x1x1x64xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2, 3] : (tensor<1x1x1x64xf32>) -> tensor<4x7x7x64xf32>
    %36 = stablehlo.add %33, %35 : tensor<4x7x7x64xf32>
    %37 = stablehlo.multiply %36, %36 : tensor<4x7x7x64xf32>
    %38 = stablehlo.multiply %37, %36 : tensor<4x7x7x64xf32>
    %cst_6 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4x7x7x64xf32>
    %40 = stablehlo.multiply %39, %38 : tensor<4x7x7x64xf32>
    %41 = stablehlo.add %36, %40 : tensor<4x7x7x64xf32>
    %cst_7 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4x7x7x64xf32>
    %43 = stablehlo.multiply %42, %41 : tensor<4x7x7x64xf32>
    %44 = stablehlo.tanh %43 : tensor<4x7x7x64xf32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x7x7x64xf32>
    %46 = stablehlo.add %45, %44 : tensor<4x7x7x64xf32>
    %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<4x7x7x64xf32>
    %48 = stablehlo.multiply %47, %46 : tensor<4x7x7x64xf32>
    %49 = stablehlo.multiply %36, %48 : tensor<4x7x7x64xf32>
    %50 = stablehlo.reshape %49 : (tensor<4x7x7x64xf32>) -> tensor<4x3136xf32>
    %51 = stablehlo.dot_general %50, %arg5, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x3136xf32>, tensor<3136x10xf32>) -> tensor<4x10xf32>
    %52 = stablehlo.reshape %arg4 : (tensor<10xf32>) -> tensor<1x10xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1] : (tensor<1x10xf32>) -> tensor<4x10xf32>
    %54 = stablehlo.add %51, %53 : tensor<4x10xf32>
    return %54 : tensor<4x10xf32>
  }
  func.func private @relu(%arg0: tensor<4x28x28x32xf32>) -> tensor<4x28x28x32xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x28x28x32xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<4x28x28x32xf32>
    return %1 : tensor<4x28x28x32xf32>
  }
}
