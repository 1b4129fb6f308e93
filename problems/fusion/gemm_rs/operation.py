"""The product of slices of the inner dimension, then a reduce-scatter of its rows."""
import torch
import torch.distributed as dist


def operation(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """a: [world * rows, k], b: [32, k] in float16; c: [rows, 32] in float32."""
    dist.reduce_scatter_tensor(c, torch.matmul(a.float(), b.float().t()))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for tiles, depth in ((1, 1), (2, 2)):
        a = torch.randint(-8, 9, (world * tiles * 64, depth * 64), device="cuda").half()
        b = torch.randint(-8, 9, (32, depth * 64), device="cuda").half()
        operation(a, b, torch.empty(tiles * 64, 32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
