"""The product of each rank's rows with its own B, then an all-gather of the products."""
import torch
import torch.distributed as dist


def operation(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """a: [rows, k], b: [32, k] in float16; c: [world * rows, 32] in float32."""
    dist.all_gather_into_tensor(c, torch.matmul(a.float(), b.float().t()))


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for tiles, depth in ((2, 1), (4, 2)):
        a = torch.randint(-8, 9, (tiles * 64, depth * 64), device="cuda").half()
        b = torch.randint(-8, 9, (32, depth * 64), device="cuda").half()
        rows = dist.get_world_size() * tiles * 64
        operation(a, b, torch.empty(rows, 32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
